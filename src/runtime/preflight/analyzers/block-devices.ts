import { firstOutcome, type Analyzer } from '../analyzer.ts';
import { blockDevices as collector, type BlockDevice } from '../collectors/block-devices.ts';
import { compareNumbers, wholeNumber, splitCondition } from '../compare.ts';
import { matchAll } from '../pattern.ts';
import type { Settings } from '../settings.ts';

export const blockDevices: Analyzer<readonly BlockDevice[]> = {
  kind: 'blockDevices',
  collector,
  settings: { minimumAcceptableSize: 'whole', includeUnmountedPartitions: 'yesno', additionalDeviceTypes: 'texts' },
  title: () => 'Block Devices',
  analyze: firstOutcome(holds),
};

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
