/** The unfinished run of an install folder. */
import { readAsked, type Asked } from './asked.ts';
import { readLastRun } from './last-run.ts';
import { readRecords } from '../node/records.ts';

/** The last run and its request; undefined if there is none or it finished. */
export async function lastAsked(
  directory: string,
): Promise<{ readonly run: string; readonly asked: Asked | undefined } | undefined> {
  const records = await readRecords(directory);
  const last = await readLastRun(directory, records);
  if (last === undefined || last.outcome === 'finished') return undefined;
  return { run: last.run, asked: await readAsked(directory, last.run) };
}
