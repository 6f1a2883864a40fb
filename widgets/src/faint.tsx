// What is told beside the matter: a word in a line, or a line of its own.
import type { HTMLAttributes } from "preact";

export const Faint = (props: HTMLAttributes<HTMLSpanElement>) => <span class="sagents-faint" {...props} />;
export const FaintLine = (props: HTMLAttributes<HTMLParagraphElement>) => <p class="sagents-faint" {...props} />;
