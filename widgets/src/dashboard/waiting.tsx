// What waits for people, in any agency: a badge, a list, and the browser's word if it may say one.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../button";
import { count } from "../format";
import { Icon } from "../icons";
import type { Approval } from "./hub";
import { addressOf, type Place } from "./place";
import { Ago } from "./time";

const keyOf = ({ threadId, since }: Approval) => `${threadId} ${since}`;
const placeOf = ({ agencyId, threadId }: Approval): Place => ({ page: "thread", agency: agencyId, thread: threadId });
const toolsOf = ({ tools }: Approval) => (tools.length > 0 ? tools.join(", ") : "a question");
const mayAsk = () => "Notification" in globalThis && Notification.permission === "default";

type Props = { approvals: Approval[]; /** The thread that is shown, if one is. */ current: string; /** What the page is about. */ where: string };

export function Waiting({ approvals, current, where }: Props) {
  const [open, setOpen] = useState(false);
  const [asks, setAsks] = useState(mayAsk);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useNotes(approvals, current);

  useEffect(() => {
    const number = approvals.length > 0 ? `(${approvals.length}) ` : "";
    document.title = `${number}${where && `${where} · `}sagents_nb hub`;
  }, [approvals.length, where]);
  // Before it is drawn: who is quick at the keyboard has left it by then.
  useLayoutEffect(() => {
    if (!open) return;
    const leave = ({ target }: Event) => root.current?.contains(target as Node) || setOpen(false);
    // Who goes on by the keyboard would have it before what comes next.
    for (const event of ["click", "focusin"]) document.addEventListener(event, leave);
    return () => ["click", "focusin"].forEach((event) => document.removeEventListener(event, leave));
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open) return;
    setOpen(false);
    button.current?.focus();
  };
  const label = approvals.length === 0 ? "Nothing waits" : `${count(approvals.length, "approval")} waiting`;
  return (
    <div class="hub-waiting" ref={root} onKeyDown={onKeyDown}>
      <Button ref={button} aria-expanded={open} aria-label={label} data-testid="waiting" data-count={approvals.length} onClick={() => setOpen(!open)}>
        <Icon name="hand" />
        <span class="hub-wide">{label}</span>
        {approvals.length > 0 && <span class="hub-narrow">{approvals.length}</span>}
      </Button>
      <span class="sagents-sr" role="status">
        {approvals.length > 0 && label}
      </span>
      {open && (
        <section class="hub-popover" aria-label="What waits for people">
          {approvals.length === 0 ? (
            <p class="hub-empty">No thread waits for an approval.</p>
          ) : (
            <ul class="hub-tree">
              {approvals.map((approval) => (
                <li key={keyOf(approval)}>
                  <a class="hub-row" href={addressOf(placeOf(approval))} data-testid="approval-link" onClick={() => setOpen(false)}>
                    <span class="hub-row-name">{approval.title || approval.agentType}</span>
                    <span class="hub-row-about">
                      <span class="hub-tools">{toolsOf(approval)}</span>
                      <span>{approval.agency}</span>
                      <Ago at={approval.since} />
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          )}
          {asks && (
            <Button kind="plain" onClick={() => Notification.requestPermission().then(() => setAsks(mayAsk()))}>
              Notify me when this page is out of sight
            </Button>
          )}
        </section>
      )}
    </div>
  );
}

/** The browser's word for each that is new and not looked at. */
function useNotes(approvals: Approval[], current: string): void {
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    const before = known.current;
    known.current = new Set(approvals.map(keyOf));
    if (!before || !("Notification" in globalThis) || Notification.permission !== "granted") return;
    for (const approval of approvals) {
      const seen = document.visibilityState === "visible" && approval.threadId === current;
      if (before.has(keyOf(approval)) || seen) continue;
      const note = new Notification(`${approval.agency} needs an approval`, { body: `${approval.title || approval.agentType}: ${toolsOf(approval)}`, tag: approval.threadId });
      note.onclick = () => {
        focus();
        location.assign(addressOf(placeOf(approval)));
        note.close();
      };
    }
  }, [approvals]);
}
