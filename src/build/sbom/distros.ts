/** Which distribution the host packages of an operating system's folder come from, by the names of its os-release. */
import { isOsId, type OsId } from '../../core/os.ts';

interface Distro {
  /** `ID`; the repositories that the packages were fetched from decide, not the system that takes them. */
  readonly id: string;
  /** `VERSION_ID`, of rebuilds only what counts for a whole release. */
  readonly version: string;
}

const DISTROS: Readonly<Record<OsId, Distro>> = {
  'ubuntu-16.04': { id: 'ubuntu', version: '16.04' },
  'ubuntu-18.04': { id: 'ubuntu', version: '18.04' },
  'ubuntu-20.04': { id: 'ubuntu', version: '20.04' },
  'ubuntu-22.04': { id: 'ubuntu', version: '22.04' },
  'ubuntu-24.04': { id: 'ubuntu', version: '24.04' },
  'ubuntu-26.04': { id: 'ubuntu', version: '26.04' },
  'rhel-7': { id: 'centos', version: '7' },
  'rhel-7-force': { id: 'centos', version: '7' },
  'rhel-8': { id: 'rocky', version: '8' },
  'rhel-9': { id: 'rocky', version: '9' },
  'ol-7': { id: 'ol', version: '7' },
  'amazon-2023': { id: 'amzn', version: '2023' },
};

/** Undefined for a folder that this version does not know. */
export function distroOf(os: string): Distro | undefined {
  return isOsId(os) ? DISTROS[os] : undefined;
}
