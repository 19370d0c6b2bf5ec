/** Packages whose relations are those that resolvers stumble over; none of them does anything. */
import type { TinyPackage } from './apt-repository.ts';

/** Number of files of the package with a huge list. */
export const MANY_FILES = 4000;

export const TINY_PACKAGES: readonly TinyPackage[] = [
  // The base system: names that a real one has in newer versions. libc6 is in it because base-files needs it.
  // Every system has either zebra-heavy or zebra-light.
  {
    name: 'base-files',
    version: '1.0',
    fields: {
      Essential: 'yes',
      Priority: 'required',
      'Pre-Depends': 'libc6',
      Depends: 'zebra-heavy | zebra-light',
    },
  },
  { name: 'zebra-heavy', version: '1.0' },
  { name: 'zebra-light', version: '1.0' },
  { name: 'zebra-toll', version: '1.0', fields: { Depends: 'zebra-heavy, libc6' } },
  { name: 'libc6', version: '1.0', arch: 'amd64', fields: { Priority: 'optional' } },
  { name: 'libc6', version: '1.0', arch: 'arm64', fields: { Priority: 'optional' } },
  {
    name: 'zebra-app',
    version: '2.0-1',
    arch: 'amd64',
    fields: {
      Depends: 'zebra-lib (>= 1:2.0), zebra-missing | zebra-choice, zebra-mail, base-files (>= 1.0), libc6',
      'Pre-Depends': 'zebra-early',
      Recommends: 'zebra-docs',
      Suggests: 'zebra-toys',
    },
  },
  {
    name: 'zebra-app',
    version: '2.0-1',
    arch: 'arm64',
    fields: { Depends: 'zebra-lib (>= 1:2.0), zebra-arm-firmware' },
  },
  { name: 'zebra-arm-firmware', version: '1.0', arch: 'arm64' },
  // 9.0 is the older one: it has no epoch.
  { name: 'zebra-lib', version: '9.0-1' },
  { name: 'zebra-lib', version: '1:2.3-1' },
  { name: 'zebra-choice', version: '1.0~rc1+git5-1', fields: { Depends: 'zebra++' } },
  { name: 'zebra++', version: '0.1' },
  { name: 'zebra-mailer', version: '3', fields: { Provides: 'zebra-mail (= 3)', Conflicts: 'zebra-mail' } },
  { name: 'zebra-early', version: '1.0', fields: { 'Multi-Arch': 'foreign' } },
  { name: 'zebra-docs', version: '1.0' },
  { name: 'zebra-toys', version: '1.0' },
  { name: 'zebra-many', version: '1.0', files: MANY_FILES },
  { name: 'zebra-enemy', version: '1.0', fields: { Conflicts: 'zebra-lib' } },
  { name: 'zebra-future', version: '1.0', fields: { Depends: 'zebra-lib (>= 9:0)' } },
];
