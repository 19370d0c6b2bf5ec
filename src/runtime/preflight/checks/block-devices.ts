/** Disks and partitions from lsblk. */
import * as v from 'valibot';
import { finite, type Read } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { outputOf } from '../host.ts';
import { compareNumbers, firstOutcome, splitCondition, wholeNumber } from '../outcome.ts';
import { matchAll } from '../pattern.ts';
import type { Settings } from '../check-settings.ts';

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
type BlockDevice = Read<typeof row>;

const COLUMNS = 'NAME,KNAME,PKNAME,TYPE,SIZE,FSTYPE,MOUNTPOINT,RO,RM';

export const blockDevices: Check<readonly BlockDevice[]> = {
  kind: 'blockDevices',
  shared: true,
  isProgram: true,
  collect: async (_, host) =>
    parseLsblk(await outputOf('lsblk', ['--noheadings', '--bytes', '--pairs', '-o', COLUMNS], host)),
  facts: v.array(row),
  analyzerSettings: {
    minimumAcceptableSize: 'whole',
    includeUnmountedPartitions: 'yesno',
    additionalDeviceTypes: 'texts',
  },
  title: 'Block Devices',
  analyze: firstOutcome(holds),
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

/** `sd[b-z] >= 1`: the number of unused devices with a matching name. */
function holds(when: string, devices: readonly BlockDevice[], settings: Settings): boolean {
  const [pattern = '', sign = '', wanted = ''] = splitCondition(when, 3, '.* > 0');
  const matches = matchAll(
    pattern,
    devices.map(({ name }) => name),
  );
  const fit = devices.filter((device, at) => matches[at] !== undefined && isFree(device, devices, settings));
  return compareNumbers(sign, fit.length, wholeNumber(wanted));
}

/** Not mounted, without file system and partitions, writable, not removable. */
function isFree(device: BlockDevice, devices: readonly BlockDevice[], settings: Settings): boolean {
  const types = [
    'disk',
    ...(settings.yes('includeUnmountedPartitions') ? ['part'] : []),
    ...(settings.texts('additionalDeviceTypes') ?? []),
  ];
  return (
    types.includes(device.type) &&
    device.size >= (settings.whole('minimumAcceptableSize') ?? 0) &&
    device.mountpoint === '' &&
    device.filesystemType === '' &&
    !device.readOnly &&
    !device.removable &&
    !devices.some(({ parentKernelName }) => parentKernelName === device.kernelName)
  );
}
