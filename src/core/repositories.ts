/** The public package repositories of the operating systems, used if the host resolves packages without a builder image. */
import type { Arch } from './ref.ts';

export interface Repository {
  /** Name in messages and in the files of package managers: `[a-z0-9-]+`. */
  readonly id: string;
  /**
   * Its folder, http or https. For rpm it may contain `$basearch`, which dnf and yum replace. Architectures with different
   * URLs have one each.
   */
  readonly url: string | Readonly<Record<Arch, string>>;
  /** rpm only: `url` is a list of folders, one per line. */
  readonly form?: 'mirrorlist';
  /** apt only: suites, or one path with a slash at its end (`./`) for a repository without suites. */
  readonly suites?: readonly string[];
  /** apt only: absent for a repository without suites. */
  readonly components?: readonly string[];
  /**
   * Verifies its signature. For apt the path of a key ring on the machine, for rpm the addresses (https or file) of one or
   * more keys, separated by blanks. A repository without a key is trusted unverified; only a config file may configure one.
   */
  readonly key?: string;
}

/** The address of a repository for an architecture. */
export function repositoryUrl({ url }: Repository, arch: Arch): string {
  return typeof url === 'string' ? url : url[arch];
}

/**
 * Ubuntu's archive with the components that its images enable. Debian and Ubuntu install the key ring with the packages
 * `ubuntu-archive-keyring` and `ubuntu-keyring`.
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

const VAULT = 'https://vault.centos.org';
const EPEL_ARCHIVE = 'https://archives.fedoraproject.org/pub/archive/epel';
const EPEL = 'https://dl.fedoraproject.org/pub/epel';

/** The remains of CentOS 7: the vault of its last release, and EPEL's archive. Arm has a separate tree and key. */
export function centos7Repositories(): readonly Repository[] {
  const parts = ['os', 'updates', 'extras'].map((part) => ({
    id: `centos-7-${part}`,
    url: { amd64: `${VAULT}/7.9.2009/${part}/x86_64/`, arm64: `${VAULT}/altarch/7.9.2009/${part}/aarch64/` },
    key: `${VAULT}/RPM-GPG-KEY-CentOS-7 https://www.centos.org/keys/RPM-GPG-KEY-CentOS-7-aarch64`,
  }));
  return [...parts, { id: 'epel-7', url: `${EPEL_ARCHIVE}/7/$basearch/`, key: `${EPEL_ARCHIVE}/RPM-GPG-KEY-EPEL-7` }];
}

const ROCKY = 'https://dl.rockylinux.org/pub/rocky';
const ROCKY_KEYS = { 8: 'RPM-GPG-KEY-rockyofficial', 9: 'RPM-GPG-KEY-Rocky-9' } as const;

/** Rocky's current release of a major version, and EPEL. */
export function rockyRepositories(major: keyof typeof ROCKY_KEYS): readonly Repository[] {
  const parts = ['BaseOS', 'AppStream', 'extras'].map((part) => ({
    id: `rocky-${major}-${part.toLowerCase()}`,
    url: `${ROCKY}/${major}/${part}/$basearch/os/`,
    key: `${ROCKY}/${ROCKY_KEYS[major]}`,
  }));
  return [
    ...parts,
    { id: `epel-${major}`, url: `${EPEL}/${major}/Everything/$basearch/`, key: `${EPEL}/RPM-GPG-KEY-EPEL-${major}` },
  ];
}

export function oracle7Repositories(): readonly Repository[] {
  return [
    {
      id: 'ol-7-latest',
      url: 'https://yum.oracle.com/repo/OracleLinux/OL7/latest/$basearch/',
      key: 'https://yum.oracle.com/RPM-GPG-KEY-oracle-ol7',
    },
  ];
}

/** Amazon publishes its key only in packages; other systems' image builders use this copy. */
export function amazon2023Repositories(): readonly Repository[] {
  const keys = 'https://raw.githubusercontent.com/rpm-software-management/distribution-gpg-keys/main/keys';
  return [
    {
      id: 'amazonlinux',
      url: 'https://cdn.amazonlinux.com/al2023/core/mirrors/latest/$basearch/mirror.list',
      form: 'mirrorlist',
      key: `${keys}/amazon-linux/RPM-GPG-KEY-amazon-linux-2023`,
    },
  ];
}
