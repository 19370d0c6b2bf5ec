/** The list of machines in the file of a cluster, which people write: only the lines of one machine change. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { CurlewError, fileError } from '../../core/errors.ts';
import { fieldsOf, printableJson } from '../../core/json.ts';
import { changeList } from '../../formats/yaml/list-items.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import { CHANNEL_API_VERSION } from '../../cluster/channel/channel.ts';
import type { Machine, WrittenCluster } from './cluster-file.ts';

type Change = { readonly remove: string } | { readonly add: Machine };

/** The text of a file now, and after a change. */
export interface ChangedFile {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** `UNSUPPORTED` with what to change where the list is not a plain one. */
export async function changedFile({ file, name, machines }: WrittenCluster, change: Change): Promise<ChangedFile> {
  const before = await textOf(file);
  const isIt = (value: unknown): boolean => {
    const { apiVersion, kind, metadata } = fieldsOf(value);
    return apiVersion === CHANNEL_API_VERSION && kind === 'Cluster' && fieldsOf(metadata)['name'] === name;
  };
  if ('remove' in change && machines.length === 1) {
    throw new CurlewError('UNSUPPORTED', `cannot remove ${change.remove} from ${file}: it is its only machine`, {
      hint: 'add the machine that takes its place first; curlew cluster delete resets all machines of a cluster',
    });
  }
  const remove = 'remove' in change ? machines.findIndex((one) => one.name === change.remove) : 0;
  const edit = 'add' in change ? { add: change.add } : { remove };
  const after = changeList(before, { isIt, path: ['spec', 'machines'] }, edit);
  if (after !== undefined) return { file, before, after };
  const what =
    'add' in change
      ? `add to spec.machines: ${printableJson(change.add)}`
      : `remove ${change.remove} from spec.machines`;
  throw new CurlewError(
    'UNSUPPORTED',
    `cannot change ${file}: spec.machines is not a list with one machine after the other`,
    { hint: `${what}, then use curlew cluster apply` },
  );
}

/** Replaces the file as a whole. It keeps its mode, and a link to it stays. `PLAN_CHANGED` if it is no longer what it was. */
export async function writeChanged({ file, before, after }: ChangedFile): Promise<void> {
  const path = await realpath(file);
  const { mode } = await stat(path);
  if ((await textOf(path)) !== before) {
    throw new CurlewError('PLAN_CHANGED', `cannot change ${file}: someone else has changed it meanwhile`, {
      hint: 'run the same command again: it continues',
    });
  }
  await writeText(path, after, { force: true, mode: mode & 0o777 });
}

async function textOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw fileError(`read ${file}`, error);
  });
}
