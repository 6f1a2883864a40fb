// The way in: by the code of the address, or by the token.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../button";
import { ErrorText } from "../error-text";
import { exchange, Refused } from "./hub";

/** The code of the address, which is in no history and no picture of the page from then on. */
function takeCode(): string {
  const [, code = ""] = /^#code=([\w-]+)$/.exec(location.hash) ?? [];
  if (code) history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  return code;
}

/** Inside Jupyter, once that lets nobody in any more. */
export function SignedOut() {
  return (
    <main class="hub-sign-in">
      <h1>sagents_nb hub</h1>
      <p role="alert">Jupyter has signed you out.</p>
      <Button kind="primary" onClick={() => location.reload()}>
        Sign in
      </Button>
    </main>
  );
}

type Props = { /** Why a person has to come in again. */ why: string; onToken: (token: string) => void };

export function SignIn({ why, onToken }: Props) {
  const [code] = useState(takeCode);
  const [waiting, setWaiting] = useState(code !== "");
  const [problem, setProblem] = useState(why);
  const [token, setToken] = useState("");
  const field = useRef<HTMLInputElement>(null);

  useEffect(() => {
    if (!code) return field.current?.focus();
    exchange(code)
      .then(onToken)
      .catch((error: unknown) => {
        if (!(error instanceof Refused)) throw error;
        setWaiting(false);
        setProblem(error.status === 401 ? "The code of the address is used, or older than a minute. The token opens the hub, too." : error.message);
      });
  }, []);

  const onSubmit = (event: Event) => {
    event.preventDefault();
    if (token.trim()) onToken(token.trim());
  };
  return (
    <main class="hub-sign-in">
      <h1>sagents_nb hub</h1>
      {waiting ? (
        <p role="status">Opening…</p>
      ) : (
        <form class="hub-form" onSubmit={onSubmit}>
          <div class="hub-field">
            <label for="hub-token">Token</label>
            <input
              id="hub-token"
              aria-describedby="hub-token-hint"
              ref={field}
              type="password"
              autocomplete="off"
              spellcheck={false}
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
            <small id="hub-token-hint">The hub printed it when it began, with an address that needs none.</small>
          </div>
          <ErrorText text={problem} />
          <button class="sagents-button sagents-primary" disabled={!token.trim()}>
            Open the hub
          </button>
        </form>
      )}
    </main>
  );
}
