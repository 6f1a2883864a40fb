// Moments, as people say them, and as time goes by.
import { useEffect, useState } from "preact/hooks";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
// "Tomorrow" would be said of what is 25 hours away.
const words = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** How far `moment` is from `now`, both in milliseconds. */
export function distance(moment: number, now: number): string {
  const away = (moment - now) / 1000;
  if (away < 1 && away > -60) return away > 0 ? "now" : "just now";
  const [unit, seconds] = UNITS.find(([, seconds]) => Math.abs(away) >= seconds)!;
  return words.format(Math.trunc(away / seconds), unit);
}

const ticking = new Set<() => void>();
let clock: ReturnType<typeof setInterval> | undefined;

/** What `say` says, drawn anew once that is something else. */
function useNow(say: (now: number) => string): string {
  const said = say(Date.now());
  const [, setShown] = useState(said);
  useEffect(() => {
    const tick = () => setShown(say(Date.now()));
    ticking.add(tick);
    clock ??= setInterval(() => ticking.forEach((each) => each()), 1_000);
    return () => {
      ticking.delete(tick);
      if (ticking.size > 0) return;
      clearInterval(clock);
      clock = undefined;
    };
  });
  return said;
}

type Props = { at: string | null | undefined; /** That of the person, if it is not said. */ zone?: string };

/** How long ago that was, or how long until then; the whole of it on approach. */
export function Ago({ at, zone }: Props) {
  const said = useNow((now) => (at ? distance(Date.parse(at), now) : ""));
  if (!at) return null;
  return (
    <time dateTime={at} title={exactly(at, zone, true)}>
      {said}
    </time>
  );
}

/** The moment itself. */
export const At = ({ at, zone }: Props) => (at ? <time dateTime={at}>{exactly(at, zone)}</time> : null);

export const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** A moment as it is called in a time zone, which is told where it is not the person's own. */
export function exactly(at: string, zone = OWN_ZONE, whole = false): string {
  const moment = new Date(at);
  const options: Intl.DateTimeFormatOptions = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  if (whole || moment.getFullYear() !== new Date().getFullYear()) options.year = "numeric";
  if (whole || moment.getSeconds() !== 0) options.second = "2-digit";
  try {
    const text = moment.toLocaleString("en-GB", { ...options, timeZone: zone });
    return zone === OWN_ZONE ? text : `${text} ${zone}`;
  } catch {
    return moment.toLocaleString("en-GB", options); // the browser knows no such zone
  }
}
