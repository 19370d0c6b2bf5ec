/** Whether host packages are installed. */
import * as v from 'valibot';
import { finite, type Read } from '../../../core/schema.ts';
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { runCollectorProgram } from '../program.ts';
import type { SettingForms } from '../settings.ts';
import { readOsRelease } from './host-os.ts';

const systemPackage = v.object({
  name: v.string(),
  /** Output of dpkg or rpm. */
  details: v.string(),
  exitCode: finite,
  error: v.string(),
});
export type SystemPackage = Read<typeof systemPackage>;

const facts = v.object({ os: v.string(), osVersion: v.string(), packages: v.array(systemPackage) });
export type SystemPackageFacts = Read<typeof facts>;

/** Distributions by `ID` of os-release, the major versions with their own list, and the query command. */
const SYSTEMS: Readonly<Record<string, { readonly versions: readonly string[]; readonly query: readonly string[] }>> = {
  ubuntu: { versions: ['16', '18', '20', '22', '24'], query: ['dpkg', '-s'] },
  centos: { versions: ['7', '8', '9'], query: ['rpm', '-qi'] },
  rhel: { versions: ['7', '8', '9'], query: ['rpm', '-qi'] },
  ol: { versions: ['7', '8', '9'], query: ['rpm', '-qi'] },
  rocky: { versions: ['8', '9'], query: ['rpm', '-qi'] },
  amzn: { versions: ['2', '2023'], query: ['rpm', '-qi'] },
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
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (settings, host) => {
    const { id: os, version: osVersion } = await readOsRelease(host);
    const system = Object.hasOwn(SYSTEMS, os) ? SYSTEMS[os] : undefined;
    if (system === undefined)
      throw new CollectProblem(`packages of ${os === '' ? 'an unknown system' : os} cannot be queried`);
    const [command = '', ...args] = system.query;
    const [major = ''] = osVersion.split('.');
    const names = [...(settings.texts(os) ?? []), ...(settings.texts(`${os}${major}`) ?? [])];
    const packages: SystemPackage[] = [];
    for (const name of names) {
      if (!/^[A-Za-z0-9][A-Za-z0-9+._:-]*$/.test(name))
        throw new CollectProblem(`${JSON.stringify(name)} is not a package name`);
      const { status, stdout, stderr } = await runCollectorProgram(command, [...args, name], host, {
        outputLimit: DETAILS_LIMIT,
      });
      packages.push({ name, details: stdout, exitCode: status, error: stderr });
    }
    return { os, osVersion, packages };
  },
  facts,
};
