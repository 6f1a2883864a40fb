// All agencies, with what each has used; a new one, whose secret is shown once.
import { useRef, useState } from "preact/hooks";
import { Button } from "../button";
import { CopyButton } from "../copy";
import { ErrorText } from "../error-text";
import { count, tokens } from "../format";
import { Confirm, within } from "./confirm";
import { ofNotebook, useDoing, useHub, useWatched, type Agency, type Usage } from "./hub";
import { addressOf } from "./place";
import { Ago } from "./time";

export const costOf = (cost: number | null): string => (cost === null ? "–" : `$${cost.toFixed(cost > 0 && cost < 0.1 ? 4 : 2)}`);

type Props = { agencies: Agency[] | null; again: () => Promise<void>; waiting: (agency: string) => number };

export function Agencies({ agencies, again, waiting }: Props) {
  const hub = useHub();
  const usage = useWatched(hub.usage, [hub], 5_000);
  const [made, setMade] = useState<(Agency & { secret: string }) | null>(null);
  const usageOf = (agency: Agency) => usage.value?.find(({ agencyId }) => agencyId === agency.id);
  const remove = async (agency: Agency) => {
    await hub.deleteAgency(agency.id);
    if (made?.id === agency.id) setMade(null);
    await Promise.all([again(), usage.again()]);
  };
  return (
    <main class="hub-page">
      <h1>Agencies</h1>
      {!ofNotebook && (
        <NewAgency
          onMade={(agency) => {
            setMade(agency);
            void again();
            void usage.again();
          }}
        />
      )}
      {made && <Secret agency={made} onSeen={() => setMade(null)} />}
      {agencies === null ? (
        <p class="hub-empty" role="status">
          Looking…
        </p>
      ) : agencies.length === 0 ? (
        <p class="hub-empty">
          {ofNotebook
            ? "No notebook shows a conversation here now; %agent serve in a notebook shows its own."
            : "There is no agency yet. One has threads, blueprints and schedules of its own, and a secret that opens these alone."}
        </p>
      ) : (
        <table class="hub-table">
          <thead>
            <tr>
              <th scope="col">Agency</th>
              <th scope="col" class="hub-number">
                Threads
              </th>
              <th scope="col" class="hub-number hub-wide">
                Answers
              </th>
              <th scope="col" class="hub-number hub-wide">
                Tokens in
              </th>
              <th scope="col" class="hub-number hub-wide">
                Tokens out
              </th>
              <th scope="col" class="hub-number">
                Cost
              </th>
              <th scope="col" class="hub-wide">
                Created
              </th>
              <th scope="col">
                <span class="sagents-sr">Delete</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {agencies.map((agency) => (
              <Row key={agency.id} agency={agency} usage={usageOf(agency)} waiting={waiting(agency.id)} onDelete={() => remove(agency)} />
            ))}
          </tbody>
        </table>
      )}
    </main>
  );
}

function Row({ agency, usage, waiting, onDelete }: { agency: Agency; usage: Usage | undefined; waiting: number; onDelete: () => Promise<void> }) {
  const all = usage && usage.threads > 0 ? ` and ${usage.threads === 1 ? "its thread" : `its ${usage.threads} threads`}` : "";
  const shown = (n: number | undefined, words: (n: number) => string) => (n === undefined ? "" : words(n));
  return (
    <tr data-testid="agency">
      <th scope="row">
        <a href={addressOf({ page: "new", agency: agency.id })}>{agency.name}</a>
        {waiting > 0 && <span class="sagents-badge">{count(waiting, "approval")}</span>}
      </th>
      <td class="hub-number">{shown(usage?.threads, String)}</td>
      <td class="hub-number hub-wide">{shown(usage?.modelCalls, (n) => n.toLocaleString("en"))}</td>
      <td class="hub-number hub-wide">{shown(usage?.inputTokens, tokens)}</td>
      <td class="hub-number hub-wide">{shown(usage?.outputTokens, tokens)}</td>
      <td class="hub-number" title={usage?.costUsd === null ? "No model has said what it cost" : undefined}>
        {usage && costOf(usage.costUsd)}
      </td>
      <td class="hub-wide">
        <Ago at={agency.createdAt} />
      </td>
      <td class="hub-actions">
        {agency.notebook ? (
          <Confirm label="Take off" of={agency.name} question={`Take ${within(agency.name)} off this page? The notebook keeps all of it.`} verb="Take off" onYes={onDelete} />
        ) : (
          <Confirm label="Delete" of={agency.name} question={`Delete ${within(agency.name)}${all}?`} verb="Delete" onYes={onDelete} />
        )}
      </td>
    </tr>
  );
}

function NewAgency({ onMade }: { onMade: (agency: Agency & { secret: string }) => void }) {
  const hub = useHub();
  const [name, setName] = useState("");
  const { busy, error, run } = useDoing();
  const field = useRef<HTMLInputElement>(null);
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    const made = await run(() => hub.createAgency(name.trim()));
    if (!made) return field.current?.focus();
    setName("");
    onMade(made);
  };
  return (
    <form class="hub-line" onSubmit={onSubmit}>
      <input
        ref={field}
        aria-label="Name of a new agency"
        placeholder="Name of a new agency"
        maxLength={100}
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button class="sagents-button sagents-primary" disabled={busy || !name.trim()}>
        Create
      </button>
      <ErrorText text={error} />
    </form>
  );
}

function Secret({ agency, onSeen }: { agency: Agency & { secret: string }; onSeen: () => void }) {
  return (
    <section class="hub-secret" aria-label={`Secret of ${agency.name}`} data-testid="secret">
      <p role="status">
        The secret of <b>{agency.name}</b> opens this agency and nothing else. It is shown this once.
      </p>
      <code>{agency.secret}</code>
      <CopyButton text={agency.secret} label="Copy the secret" />
      <Button onClick={onSeen}>I have it</Button>
    </section>
  );
}
