/** A file of each package that is installed on this machine. */
import { join } from 'node:path';
import { nodePath } from '../../core/layout.ts';
import { addonRef, formatRef } from '../../core/ref.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { readRecords } from '../node/records.ts';

export interface PackageText {
  /** Name of the add-on. */
  readonly name: string;
  /** For messages. */
  readonly title: string;
  readonly path: string;
  readonly text: string;
}

/** Packages without the file, or with one that this user may not read, are left out. */
export async function packageTexts(directory: string, file: string, limit: number): Promise<readonly PackageText[]> {
  const records = await readRecords(directory).catch(() => undefined);
  const found: PackageText[] = [];
  for (const { tree, name, version } of records?.extracted ?? []) {
    const ref = addonRef(name, version, tree);
    const path = join(directory, nodePath.addon(ref), file);
    const text = (await readLimited(path, limit).catch(() => undefined))?.toString('utf8');
    if (text !== undefined) found.push({ name, title: `${formatRef(ref)}: ${file}`, path, text });
  }
  return found;
}
