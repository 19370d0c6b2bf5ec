/** Disks and partitions from lsblk. */
import { DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { isListOf } from '../fact-shapes.ts';
import { outputOf } from '../program.ts';

export type BlockDevice = {
  readonly name: string;
  readonly kernelName: string;
  readonly parentKernelName: string;
  /** `disk`, `part`, `lvm`, … */
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  readonly filesystemType: string;
  readonly mountpoint: string;
  readonly readOnly: boolean;
  readonly removable: boolean;
};

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
  isFacts: (value): value is readonly BlockDevice[] =>
    isListOf(value, {
      name: 'text',
      kernelName: 'text',
      parentKernelName: 'text',
      type: 'text',
      size: 'number',
      filesystemType: 'text',
      mountpoint: 'text',
      readOnly: 'yesno',
      removable: 'yesno',
    }),
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
