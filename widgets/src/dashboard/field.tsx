// A field of a form: its name above it, and below it what it is for, or what is wrong with it.
import type { ComponentChildren } from "preact";

type About = { id: string; name: string; "aria-invalid": boolean; "aria-describedby": string };
type Props = { name: string; label: string; hint?: string | undefined; problem?: string | undefined; children: (about: About) => ComponentChildren };

export function Field({ name, label, hint, problem, children }: Props) {
  const id = `hub-${name}`;
  return (
    <div class="hub-field">
      <label for={id}>{label}</label>
      {children({ id, name, "aria-invalid": !!problem, "aria-describedby": `${id}-hint` })}
      <small id={`${id}-hint`} class={problem ? "hub-wrong" : undefined} role={problem ? "alert" : undefined}>
        {problem ?? hint}
      </small>
    </div>
  );
}

/** Puts the focus on the field of that name, where it is in `form`. */
export const lookAt = (form: HTMLElement | null, name: string) => form?.querySelector<HTMLElement>(`[name="${name}"]`)?.focus();
