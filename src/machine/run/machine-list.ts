/** The list of machines in the file of a cluster, which people write: only the lines of one machine change. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { CurlewError, fileError } from '../../core/errors.ts';
import { fieldsOf, printableJson } from '../../core/json.ts';
import { changeList } from '../../formats/yaml/list-items.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import { CHANNEL_API_VERSION } from '../../channel/channel.ts';
import type { Machine, WrittenCluster } from './cluster-file.ts';

type Change = { readonly remove: string } | { readonly add: Machine };

/** The text of the file after a change. `UNSUPPORTED` with what to change where the list is not a plain one. */
export async function changedText({ file, name, machines }: WrittenCluster, change: Change): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw fileError(`read ${file}`, error);
  });
  const isIt = (value: unknown): boolean => {
    const { apiVersion, kind, metadata } = fieldsOf(value);
    return apiVersion === CHANNEL_API_VERSION && kind === 'Cluster' && fieldsOf(metadata)['name'] === name;
  };
  const remove = 'remove' in change ? machines.findIndex((one) => one.name === change.remove) : 0;
  const edit = 'add' in change ? { add: change.add } : { remove };
  const changed = changeList(text, { isIt, path: ['spec', 'machines'] }, edit);
  if (changed !== undefined) return changed;
  const what =
    'add' in change
      ? `add to spec.machines: ${printableJson(change.add)}`
      : `remove ${change.remove} from spec.machines`;
  throw new CurlewError(
    'UNSUPPORTED',
    `cannot change ${file}: spec.machines is not a list with one machine after the other`,
    {
      hint: `${what}, then use curlew cluster apply`,
    },
  );
}

/** Replaces the file as a whole. It keeps its mode, and a link to it stays. */
export async function writeChanged({ file }: Pick<WrittenCluster, 'file'>, text: string): Promise<void> {
  const path = await realpath(file);
  const { mode } = await stat(path);
  await writeText(path, text, { force: true, mode: mode & 0o777 });
}
