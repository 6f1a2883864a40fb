// Where somebody is in the dashboard: the part of the address behind "#", so that links, the
// browser's way back and its list of pages work.
import { useEffect, useState } from "preact/hooks";

export type Place =
  | { page: "agencies" }
  | { page: "new"; agency: string }
  | { page: "thread"; agency: string; thread: string }
  /** Without a name it is a new one. */
  | { page: "blueprint"; agency: string; name: string }
  | { page: "schedules"; agency: string }
  | { page: "schedule"; agency: string; schedule: string }
  /** Without an id it is a new one. */
  | { page: "edit-schedule"; agency: string; schedule: string };

export function placeOf(hash: string): Place {
  const [root, agency = "", page = "", id = ""] = hash.replace(/^#\/?/, "").split("/").map(plain);
  if (root !== "agency" || !agency) return { page: "agencies" };
  if (page === "thread" && id) return { page, agency, thread: id };
  if (page === "blueprint") return { page, agency, name: id };
  if (page === "schedules") return { page, agency };
  if (page === "schedule" && id) return { page, agency, schedule: id };
  if (page === "edit-schedule") return { page, agency, schedule: id };
  return { page: "new", agency };
}

const plain = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

export function addressOf(place: Place): string {
  if (place.page === "agencies") return "#/";
  const agency = `#/agency/${encodeURIComponent(place.agency)}`;
  if (place.page === "thread") return `${agency}/thread/${encodeURIComponent(place.thread)}`;
  if (place.page === "blueprint") return `${agency}/blueprint/${encodeURIComponent(place.name)}`;
  if (place.page === "schedules") return `${agency}/schedules`;
  if (place.page === "schedule" || place.page === "edit-schedule") return `${agency}/${place.page}/${encodeURIComponent(place.schedule)}`;
  return agency;
}

export function go(place: Place, replace = false): void {
  if (replace) location.replace(addressOf(place));
  else location.assign(addressOf(place));
}

/** Who reads, or uses the keyboard, goes on from the heading of what is shown. */
export function toHeading(): void {
  const heading = document.querySelector<HTMLElement>("main h1:not([hidden] *)");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const follow = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return place;
}
