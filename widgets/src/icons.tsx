// Icons as inline SVG: 16 × 16, drawn with the text's colour. They never carry meaning alone.
import type { ComponentChildren } from "preact";

const outlines = {
  check: <path d="m3.5 8.5 3 3 6-7" />,
  cross: <path d="m4.5 4.5 7 7m0-7-7 7" />,
  chevron: <path d="m6 4 4 4-4 4" />,
  earlier: <path d="m10 4-4 4 4 4" />,
  back: <path d="M13 8H3.5m4-4-4 4 4 4" />,
  send: <path d="M8 13V3.5m-4 4 4-4 4 4" />,
  pencil: <path d="m3 13 .6-2.6L11 3l2 2-7.4 7.4zM9.5 4.5l2 2" />,
  fork: <path d="M4.5 2.5v11M4.5 9.5c0-3 7-1.5 7-5.5M9.3 5.8l2.2-2.3 2 2.3" />,
  copy: <path d="M5.5 5.5h7v7h-7zM10.5 5.5v-2h-7v7h2" />,
  file: <path d="M4 2.5h5l3 3v8H4zM9 2.5v3h3" />,
  folder: <path d="M2.5 4h4l1.2 1.5h5.8v7h-11z" />,
  alert: <path d="M8 2.7 14 13H2zM8 6.8v2.7m0 1.6v.3" />,
  skip: <path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM5.5 8h5" />,
  circle: <path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z" />,
  done: <path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM5.5 8.2l1.8 1.8 3.3-3.8" />,
  failed: <path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6 6l4 4m0-4-4 4" />,
  hand: <path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.7 5.8v4.4m2.6-4.4v4.4" />,
  busy: (
    <>
      <path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z" opacity=".25" />
      <path d="M8 2.5A5.5 5.5 0 0 1 13.5 8" />
    </>
  ),
  thought: <path d="M3 4.5h10M3 8h10M3 11.5h6" />,
  clip: <path d="m12.8 7.6-5 5a3 3 0 0 1-4.3-4.2l5.4-5.4a2 2 0 0 1 2.8 2.8l-5.2 5.3a1 1 0 0 1-1.4-1.4l4.7-4.8" />,
  again: <path d="M12.8 6.2A5.2 5.2 0 1 0 13 9.5M13 3v3.3H9.7" />,
  stop: <path d="M5 5h6v6H5z" fill="currentColor" />,
  stopped: <path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.4 6.4h3.2v3.2H6.4z" />,
} satisfies Record<string, ComponentChildren>;

export type IconName = keyof typeof outlines;

export function Icon({ name, turning = false }: { name: IconName; turning?: boolean }) {
  return (
    <svg
      class={turning ? "sagents-icon sagents-turning" : "sagents-icon"}
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {outlines[name]}
    </svg>
  );
}
