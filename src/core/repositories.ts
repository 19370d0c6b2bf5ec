/** The public package repositories of the operating systems, as data: what a host asks when no builder image does. */
import type { Arch } from './ref.ts';

export interface Repository {
  /** Name in messages and in the files of package managers: `[a-z0-9-]+`. */
  readonly id: string;
  /**
   * Its folder, http or https. For rpm it may hold `$basearch`, which dnf and yum fill in. An architecture that lives
   * elsewhere has its own.
   */
  readonly url: string | Readonly<Record<Arch, string>>;
  /** apt only: suites, or one path with a slash at its end (`./`) for a repository without any. */
  readonly suites?: readonly string[];
  /** apt only: none for a repository without suites. */
  readonly components?: readonly string[];
  /**
   * What its signature is checked with. For apt the path of a key ring on the machine, for rpm the address (https, or
   * file) of a key. A repository without one is taken on trust; only a config file may say so.
   */
  readonly key?: string;
}

/** Where a repository is for an architecture. */
export function repositoryUrl({ url }: Repository, arch: Arch): string {
  return typeof url === 'string' ? url : url[arch];
}

/**
 * Ubuntu's archive with the components that its images enable. Key ring: Debian and Ubuntu ship it there, in the
 * packages `ubuntu-archive-keyring` and `ubuntu-keyring`.
 */
export function ubuntuRepositories(codename: string): readonly Repository[] {
  return [
    {
      id: `ubuntu-${codename}`,
      url: { amd64: 'http://archive.ubuntu.com/ubuntu/', arm64: 'http://ports.ubuntu.com/ubuntu-ports/' },
      suites: [codename, `${codename}-updates`, `${codename}-security`],
      components: ['main', 'restricted', 'universe', 'multiverse'],
      key: '/usr/share/keyrings/ubuntu-archive-keyring.gpg',
    },
  ];
}

const CENTOS_KEY = 'https://vault.centos.org/RPM-GPG-KEY-CentOS-7';
const EPEL = 'https://archives.fedoraproject.org/pub/archive/epel';

/** CentOS 7.4.1708, of which only the vault is left, with EPEL. Arm had a tree and a key of its own. */
export function centos7Repositories(): readonly Repository[] {
  const centos = (part: string): Repository => ({
    id: `centos-7-${part}`,
    url: {
      amd64: `https://vault.centos.org/7.4.1708/${part}/x86_64/`,
      arm64: `https://vault.centos.org/altarch/7.4.1708/${part}/aarch64/`,
    },
    key: CENTOS_KEY,
  });
  const epel = { id: 'epel-7', url: `${EPEL}/7/$basearch/`, key: `${EPEL}/RPM-GPG-KEY-EPEL-7` };
  return [centos('os'), centos('updates'), centos('extras'), epel];
}

export function rockyRepositories(version: string, parts: readonly string[]): readonly Repository[] {
  const [major = version] = version.split('.');
  const key = major === '8' ? 'RPM-GPG-KEY-rockyofficial' : `RPM-GPG-KEY-Rocky-${major}`;
  const root = version.includes('.') ? 'https://dl.rockylinux.org/vault/rocky' : 'https://dl.rockylinux.org/pub/rocky';
  return parts.map((part) => ({
    id: `rocky-${major}-${part.toLowerCase()}`,
    url: `${root}/${version}/${part}/$basearch/os/`,
    key: `https://dl.rockylinux.org/pub/rocky/${key}`,
  }));
}

export function oracle7Repositories(): readonly Repository[] {
  return ['latest', 'addons', 'optional_latest'].map((part) => ({
    id: `ol-7-${part.replaceAll('_', '-')}`,
    url: `https://yum.oracle.com/repo/OracleLinux/OL7/${part.replace('_', '/')}/$basearch/`,
    key: 'https://yum.oracle.com/RPM-GPG-KEY-oracle-ol7',
  }));
}

export function amazon2023Repositories(): readonly Repository[] {
  const root = 'https://cdn.amazonlinux.com/al2023';
  return [
    { id: 'amazonlinux', url: `${root}/core/mirrors/latest/$basearch/`, key: `${root}/RPM-GPG-KEY-amazon-linux-2023` },
  ];
}
