/** A loop that waits for changes. */

export class Wake {
  #isSet = false;
  #end: (() => void) | undefined;

  /** Ends the present wait, or the next one. */
  set(): void {
    this.#isSet = true;
    this.#end?.();
  }

  /** A call from now on ends the next wait. */
  clear(): void {
    this.#isSet = false;
  }

  /** Waits for the time, or until it is set; throws the signal's reason if that aborts. */
  async wait(ms: number, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        this.#end = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#end = end;
      signal.addEventListener('abort', end);
      if (this.#isSet || signal.aborted) end();
    });
    signal.throwIfAborted();
  }
}
