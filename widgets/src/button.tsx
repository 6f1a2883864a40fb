// The panel's button: one that sends no form, should a host put the panel into one.
import type { ButtonHTMLAttributes } from "preact";

type Props = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: "quiet" | "plain" | "primary" | "danger" | "stop" };

export const Button = ({ kind, ...props }: Props) => (
  <button type="button" class={kind ? `sagents-button sagents-${kind}` : "sagents-button"} {...props} />
);
