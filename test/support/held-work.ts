/** Work for tests of what bounds it. */

/** Runs until it is let go. */
export function held(): {
  readonly work: () => Promise<string>;
  readonly letGo: () => void;
  readonly isBegun: () => boolean;
} {
  let letGo = (): void => undefined;
  let isBegun = false;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const work = async (): Promise<string> => {
    isBegun = true;
    await gate;
    return 'done';
  };
  return { work, letGo: () => letGo(), isBegun: () => isBegun };
}

/** Until everything that can happen has happened. */
export async function soon(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
