/** Disks and partitions from lsblk. */
import * as v from 'valibot';
import { finite, type Read } from '../../../core/schema.ts';
import { DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { outputOf } from '../program.ts';

const row = v.object({
  name: v.string(),
  kernelName: v.string(),
  parentKernelName: v.string(),
  /** `disk`, `part`, `lvm`, … */
  type: v.string(),
  /** Bytes. */
  size: finite,
  filesystemType: v.string(),
  mountpoint: v.string(),
  readOnly: v.boolean(),
  removable: v.boolean(),
});
export type BlockDevice = Read<typeof row>;

const COLUMNS = 'NAME,KNAME,PKNAME,TYPE,SIZE,FSTYPE,MOUNTPOINT,RO,RM';

export const blockDevices: Collector<readonly BlockDevice[]> = {
  kind: 'blockDevices',
  defaultName: 'blockDevices',
  shared: true,
  isProgram: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (_, host) =>
    parseLsblk(await outputOf('lsblk', ['--noheadings', '--bytes', '--pairs', '-o', COLUMNS], host)),
  facts: v.array(row),
};

/** Lines of `NAME="vda" KNAME="vda" …`; other characters than printable ones are written `\x20`. */
function parseLsblk(text: string): readonly BlockDevice[] {
  return text.split('\n').flatMap((line) => {
    const fields = new Map<string, string>();
    for (const [, key = '', value = ''] of line.matchAll(/([A-Z_]+)="((?:[^"\\]|\\.)*)"/g))
      fields.set(key, unescaped(value));
    const field = (key: string): string => fields.get(key) ?? '';
    if (field('KNAME') === '') return [];
    return [
      {
        name: field('NAME'),
        kernelName: field('KNAME'),
        parentKernelName: field('PKNAME'),
        type: field('TYPE'),
        size: Number(field('SIZE')) || 0,
        filesystemType: field('FSTYPE'),
        mountpoint: field('MOUNTPOINT'),
        readOnly: field('RO') === '1',
        removable: field('RM') === '1',
      },
    ];
  });
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:x([0-9a-f]{2})|(.))/gi, (_, hex: string | undefined, other: string | undefined) =>
    hex === undefined ? (other ?? '') : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
