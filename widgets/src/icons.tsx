// Icons as inline SVG: 16 × 16, drawn with the text's colour. They never carry meaning alone.
import type { ComponentChildren } from "preact";

const RING = "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z";
/** Each as its path, where it is one. */
const outlines = {
  check: "m3.5 8.5 3 3 6-7",
  cross: "m4.5 4.5 7 7m0-7-7 7",
  chevron: "m6 4 4 4-4 4",
  earlier: "m10 4-4 4 4 4",
  back: "M13 8H3.5m4-4-4 4 4 4",
  send: "M8 13V3.5m-4 4 4-4 4 4",
  pencil: "m3 13 .6-2.6L11 3l2 2-7.4 7.4zM9.5 4.5l2 2",
  fork: "M4.5 2.5v11M4.5 9.5c0-3 7-1.5 7-5.5M9.3 5.8l2.2-2.3 2 2.3",
  copy: "M5.5 5.5h7v7h-7zM10.5 5.5v-2h-7v7h2",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  folder: "M2.5 4h4l1.2 1.5h5.8v7h-11z",
  alert: "M8 2.7 14 13H2zM8 6.8v2.7m0 1.6v.3",
  skip: `${RING}M5.5 8h5`,
  circle: RING,
  done: `${RING}M5.5 8.2l1.8 1.8 3.3-3.8`,
  failed: `${RING}M6 6l4 4m0-4-4 4`,
  hand: `${RING}M6.7 5.8v4.4m2.6-4.4v4.4`,
  busy: (
    <>
      <path d={RING} opacity=".25" />
      <path d="M8 2.5A5.5 5.5 0 0 1 13.5 8" />
    </>
  ),
  clip: "m12.8 7.6-5 5a3 3 0 0 1-4.3-4.2l5.4-5.4a2 2 0 0 1 2.8 2.8l-5.2 5.3a1 1 0 0 1-1.4-1.4l4.7-4.8",
  again: "M12.8 6.2A5.2 5.2 0 1 0 13 9.5M13 3v3.3H9.7",
  stop: "M5 5h6v6H5z",
  stopped: `${RING}M6.4 6.4h3.2v3.2H6.4z`,
} satisfies Record<string, ComponentChildren>;

export type IconName = keyof typeof outlines;

export function Icon({ name, turning = false }: { name: IconName; turning?: boolean }) {
  const outline = outlines[name];
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
      {typeof outline === "string" ? <path d={outline} /> : outline}
    </svg>
  );
}
