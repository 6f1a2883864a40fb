// Moments, as people say them.
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

/** How long ago that was; the whole of it on approach. */
export function Ago({ at }: { at: string | null | undefined }) {
  if (!at) return null;
  const moment = new Date(at);
  const passed = Math.max(0, (Date.now() - moment.getTime()) / 1000);
  const unit = UNITS.find(([, seconds]) => passed >= seconds);
  return (
    <time dateTime={at} title={moment.toLocaleString()}>
      {unit ? words.format(-Math.floor(passed / unit[1]), unit[0]) : "just now"}
    </time>
  );
}
