/** Whether packages of the distribution are installed. */
import { CollectProblem, USUAL_LIMIT_MS, type Collector } from '../collector.ts';
import { hasShape, isListOf } from '../fact-shapes.ts';
import { runCollectorProgram } from '../program.ts';
import type { SettingForms } from '../settings.ts';
import { readOsRelease } from './host-os.ts';

export type SystemPackage = {
  readonly name: string;
  /** What dpkg or rpm says of it. */
  readonly details: string;
  readonly exitCode: number;
  readonly error: string;
};

export type SystemPackageFacts = {
  readonly os: string;
  readonly osVersion: string;
  readonly packages: readonly SystemPackage[];
};

/** Distributions by `ID` of os-release, the major versions that have a list of their own, and who is asked. */
const SYSTEMS: Readonly<Record<string, { readonly versions: readonly string[]; readonly ask: readonly string[] }>> = {
  ubuntu: { versions: ['16', '18', '20', '22', '24'], ask: ['dpkg', '-s'] },
  centos: { versions: ['7', '8', '9'], ask: ['rpm', '-qi'] },
  rhel: { versions: ['7', '8', '9'], ask: ['rpm', '-qi'] },
  ol: { versions: ['7', '8', '9'], ask: ['rpm', '-qi'] },
  rocky: { versions: ['8', '9'], ask: ['rpm', '-qi'] },
  amzn: { versions: ['2', '2023'], ask: ['rpm', '-qi'] },
};

const SETTINGS: SettingForms = Object.fromEntries(
  Object.entries(SYSTEMS).flatMap(([os, { versions }]) =>
    ['', ...versions].map((version) => [`${os}${version}`, 'texts']),
  ),
);

const DETAILS_LIMIT = 64 << 10;

export const systemPackages: Collector<SystemPackageFacts> = {
  kind: 'systemPackages',
  defaultName: 'packages',
  shared: false,
  isProgram: true,
  settings: SETTINGS,
  limitMs: () => USUAL_LIMIT_MS,
  collect: async (settings, host) => {
    const { id: os, version: osVersion } = await readOsRelease(host);
    const system = Object.hasOwn(SYSTEMS, os) ? SYSTEMS[os] : undefined;
    if (system === undefined)
      throw new CollectProblem(`packages of ${os === '' ? 'an unknown system' : os} are not known`);
    const [command = '', ...words] = system.ask;
    const [major = ''] = osVersion.split('.');
    const names = [...(settings.texts(os) ?? []), ...(settings.texts(`${os}${major}`) ?? [])];
    const packages: SystemPackage[] = [];
    for (const name of names) {
      if (!/^[A-Za-z0-9][A-Za-z0-9+._:-]*$/.test(name))
        throw new CollectProblem(`${JSON.stringify(name)} is no package`);
      const { status, stdout, stderr } = await runCollectorProgram(command, [...words, name], host, {
        outputLimit: DETAILS_LIMIT,
      });
      packages.push({ name, details: stdout, exitCode: status, error: stderr });
    }
    return { os, osVersion, packages };
  },
  isFacts: (value): value is SystemPackageFacts =>
    hasShape(value, { os: 'text', osVersion: 'text' }) &&
    isListOf((value as SystemPackageFacts).packages, {
      name: 'text',
      details: 'text',
      exitCode: 'number',
      error: 'text',
    }),
};
