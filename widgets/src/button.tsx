// The panel's buttons: they send no form, should a host put the panel into one.
import type { ButtonHTMLAttributes } from "preact";

type Bare = ButtonHTMLAttributes<HTMLButtonElement>;
type Props = Bare & { kind?: "quiet" | "plain" | "primary" | "danger" | "stop"; class?: string };

export const BareButton = (props: Bare) => <button type="button" onPointerDown={follow} {...props} />;

export const Button = ({ kind, class: more = "", ...props }: Props) => (
  <BareButton class={`sagents-button ${kind ? `sagents-${kind}` : ""} ${more}`} {...props} />
);

/** Has a button clicked that moves away while it is pressed, as the page is laid out: the browser clicks what is there by then. */
function follow(pressed: PointerEvent): void {
  const button = pressed.currentTarget as HTMLButtonElement;
  const release = (released: PointerEvent) => {
    const stays = Math.hypot(released.clientX - pressed.clientX, released.clientY - pressed.clientY) < 4;
    const left = !button.contains(released.composedPath()[0] as Node);
    if (stays && left && button.isConnected) button.click();
  };
  if (pressed.button === 0) window.addEventListener("pointerup", release, { once: true, capture: true });
}

/** What looks like a link, in HTML that no component draws. */
export function linkTo(open: () => void, ...content: (Node | string)[]): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sagents-link";
  button.append(...content);
  button.onclick = open;
  return button;
}
