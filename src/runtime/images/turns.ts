/** Who may load at the same time: a few at once, and never two that would both bring the same layer. */

/** Waits for its turn, works, and lets the next ones go. */
export type Turns = <Result>(
  layers: readonly string[],
  work: () => Promise<Result>,
  options: { readonly signal: AbortSignal },
) => Promise<Result>;

interface Waiting {
  readonly layers: readonly string[];
  readonly start: () => void;
}

/** First come first served, but for those whose layers are on their way: others overtake them. */
export function createTurns(width: number): Turns {
  const busy = new Set<string>();
  const waiting = new Set<Waiting>();
  let running = 0;
  const letGo = (): void => {
    for (const one of waiting) {
      if (running >= width) return;
      if (one.layers.some((layer) => busy.has(layer))) continue;
      waiting.delete(one);
      running += 1;
      for (const layer of one.layers) busy.add(layer);
      one.start();
    }
  };
  const turn = async (layers: readonly string[], signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const one: Waiting = {
        layers,
        start: () => {
          signal.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      const giveUp = (): void => {
        waiting.delete(one);
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      waiting.add(one);
      letGo();
    });
  return async (layers, work, { signal }) => {
    await turn(layers, signal);
    try {
      return await work();
    } finally {
      running -= 1;
      for (const layer of layers) busy.delete(layer);
      letGo();
    }
  };
}
