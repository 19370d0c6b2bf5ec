/**
 * The process that runs one test file after another, in place of one process each: most of what a small file takes is the
 * start of its process. `hosts.ts` sends it paths of compiled files. It goes on only after a file that succeeded and left the
 * process as it was.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { childProcesses, differences, FILE_DONE, openBesides, stateOfProcess } from './state.ts';

/** For what a file has asked to end but not waited for. */
const LEFT_MS = 10_000;

/** What uvu looks for: somebody else says when the suites of which list run. */
const uvu = globalThis as { UVU_DEFER?: boolean; UVU_QUEUE?: unknown[][] };
uvu.UVU_DEFER = true;
uvu.UVU_QUEUE = [[]];
const { runSuites } = await import('../../support/suite.ts');

let number = 0;

async function runFile(path: string): Promise<void> {
  // A file that waits for nothing that can happen ends the process, as it would end its own.
  process.channel?.unref();
  uvu.UVU_QUEUE = [[null]];
  await wait(1);
  const before = stateOfProcess();
  const open = process.getActiveResourcesInfo();
  number += 1;
  // The same file may come again.
  await import(`${pathToFileURL(path).href}?${number}`);
  const isPassed = await runSuites();
  const isBusy = (): boolean => openBesides(open).length > 0 || childProcesses() !== before.get('child processes');
  for (const end = performance.now() + LEFT_MS; isBusy() && performance.now() < end;) await wait(1);
  const left = [...differences(before, stateOfProcess()), ...openBesides(open).map((sort) => `still open: ${sort}`)];
  if (isPassed && left.length === 0) {
    process.stdout.write(FILE_DONE);
    process.channel?.ref();
    return;
  }
  if (isPassed) {
    console.error(`the file does not leave its process as it was; mend it, or give it a line \`// own process: WHY\`:`);
    for (const line of left) console.error(`  ${line}`);
  }
  process.exit(1);
}

process.on('message', (path: string) => {
  void runFile(path);
});
