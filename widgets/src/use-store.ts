// How components get at the store.
import { createContext } from "preact";
import { useContext, useEffect, useReducer, useState } from "preact/hooks";
import { RequestError, type Store } from "./store";
import type { Reply } from "./protocol";

export const StoreContext = createContext<Store>(null!);
export const useStore = (): Store => useContext(StoreContext);

/** Draws the component again whenever the store has changed. */
export function useStoreState(store: Store) {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const unsubscribe = store.subscribe(() => redraw(null as never));
    redraw(null as never);
    return unsubscribe;
  }, [store]);
  return store.state;
}

type Asking = {
  /** Sends a request; null if it failed, and then `error` says why, and `failed` is told. */
  ask: (type: string, fields?: object, failed?: (problem: RequestError) => void) => Promise<Reply | null>;
  busy: boolean;
  /** The kernel takes its time: it is probably inside a cell that blocks. */
  slow: boolean;
  error: string;
  setError: (text: string) => void;
};

const SLOW = 4_000;

/** One request at a time, with what a person has to know about it. */
export function useRequest(): Asking {
  const store = useStore();
  const [busy, setBusy] = useState(false);
  const [slow, setSlow] = useState(false);
  const [error, setError] = useState("");
  const ask: Asking["ask"] = async (type, fields = {}, failed) => {
    setBusy(true);
    setError("");
    const timer = setTimeout(() => setSlow(true), SLOW);
    try {
      return await store.request(type, fields);
    } catch (problem) {
      if (!(problem instanceof RequestError)) throw problem;
      setError(problem.message);
      failed?.(problem);
      return null;
    } finally {
      clearTimeout(timer);
      setSlow(false);
      setBusy(false);
    }
  };
  return { ask, busy, slow, error, setError };
}
