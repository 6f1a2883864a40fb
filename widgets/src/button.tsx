// The panel's buttons: they send no form, should a host put the panel into one.
import type { ButtonHTMLAttributes } from "preact";

type Bare = ButtonHTMLAttributes<HTMLButtonElement>;
type Props = Bare & { kind?: "quiet" | "plain" | "primary" | "danger" | "stop"; class?: string };

export const BareButton = (props: Bare) => <button type="button" {...props} />;

export const Button = ({ kind, class: more = "", ...props }: Props) => (
  <BareButton class={`sagents-button ${kind ? `sagents-${kind}` : ""} ${more}`} {...props} />
);

/** What looks like a link, in HTML that no component draws. */
export function linkTo(open: () => void, ...content: (Node | string)[]): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sagents-link";
  button.append(...content);
  button.onclick = open;
  return button;
}
