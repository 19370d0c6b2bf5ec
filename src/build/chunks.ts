/** Turns a function that pushes chunks into a stream that is pulled from; the pusher waits for the puller. */

type Write = (chunk: Uint8Array) => Promise<void> | undefined;

/** Chunks that `send` writes, in order. Its failure ends the stream with the same error. */
export async function* chunksOf(send: (write: Write) => Promise<void>): AsyncGenerator<Uint8Array, void, undefined> {
  let offered: { readonly chunk: Uint8Array; readonly taken: () => void } | undefined;
  let wake: () => void = () => undefined;
  let ended = false;
  const write: Write = async (chunk) =>
    new Promise((taken) => {
      offered = { chunk, taken };
      wake();
    });
  const sending = (async () => {
    try {
      await send(write);
    } finally {
      ended = true;
      wake();
    }
  })();
  // Its failure is thrown below, after what was written before it.
  sending.catch(() => undefined);
  for (;;) {
    if (offered !== undefined) {
      const { chunk, taken } = offered;
      offered = undefined;
      // The bytes may be reused by the sender once it goes on.
      yield Buffer.from(chunk);
      taken();
    } else if (ended) {
      break;
    } else {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  await sending;
}
