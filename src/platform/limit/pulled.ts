/** From a sender that pushes chunks to a reader that pulls them. */
import type { Bytes } from '../../core/bytes.ts';
import type { Cancellable } from '../../core/cancellable.ts';

/** Passes a chunk on; resolves when the reader wants the next one, so that the sender may use its memory again. */
export type Write = (chunk: Uint8Array) => Promise<void>;

/**
 * The chunks that `send` writes, in order; each is valid until the reader wants the next one. `send` is called when the first one is
 * wanted, and its signal aborts where the reader stops. If it fails, the same error is thrown after the chunks before it.
 */
export async function* pulled(
  send: (write: Write, context: Cancellable) => Promise<unknown>,
  { signal }: Cancellable,
): Bytes {
  const stopped = new AbortController();
  let taken: () => void = () => undefined;
  let offer: (chunk: Uint8Array | undefined) => void = () => undefined;
  let over = false;
  const next = async (): Promise<Uint8Array | undefined> =>
    new Promise((resolve) => {
      offer = resolve;
      if (over) resolve(undefined);
    });
  let waiting = next();
  const write: Write = async (chunk) =>
    new Promise((resolve) => {
      taken = resolve;
      offer(chunk);
    });
  const sending = send(write, { signal: AbortSignal.any([signal, stopped.signal]) });
  const ended = (): void => {
    over = true;
    offer(undefined);
  };
  sending.then(ended, ended);
  try {
    for (let chunk = await waiting; chunk !== undefined; chunk = await waiting) {
      yield chunk;
      waiting = next();
      taken();
    }
    await sending;
  } finally {
    stopped.abort();
    taken();
  }
}
