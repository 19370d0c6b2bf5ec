/** What a whole file of tests has open: closed at its end, also when not all of it could be opened. */

export interface Opened {
  readonly keep: <Kept extends AsyncDisposable>(kept: Kept) => Kept;
  /** Closes in reverse order. */
  readonly close: () => Promise<void>;
}

export function createOpened(): Opened {
  const list: AsyncDisposable[] = [];
  return {
    keep: (kept) => {
      list.push(kept);
      return kept;
    },
    close: async () => {
      for (const one of list.toReversed()) await one[Symbol.asyncDispose]();
    },
  };
}
