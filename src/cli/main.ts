#!/usr/bin/env node
/**
 * Entry of the `curlew` command: listens for signals, then reads the rest, which takes a second from a slow disk. It imports
 * nothing at its top, since Node would read that before it runs any of this.
 */
const early = new AbortController();
const stop = (): void => early.abort();
// A second one ends the process, whatever it waits for.
process.once('SIGINT', stop);
process.once('SIGTERM', stop);

async function main(): Promise<void> {
  const { start } = await import('./start.ts');
  await start(early.signal);
}

void main();
