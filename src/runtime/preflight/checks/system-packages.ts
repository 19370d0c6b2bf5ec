/** Whether host packages are installed. */
import * as v from 'valibot';
import { finite, type Read } from '../../../core/schema.ts';
import type { ValueMap } from '../../../formats/go-template/values.ts';
import type { Check } from '../check.ts';
import { parseTruth } from '../go-notation.ts';
import { CollectProblem, runCollectorProgram } from '../host.ts';
import { AnalyzerProblem, type AnalyzerResult, inOutcome, messageOf } from '../outcome.ts';
import type { SettingForms } from '../check-settings.ts';
import type { AnalyzerSpec } from '../spec.ts';
import { readOsRelease } from './host-os.ts';

const systemPackage = v.object({
  name: v.string(),
  /** Output of dpkg or rpm. */
  details: v.string(),
  exitCode: finite,
  error: v.string(),
});
type SystemPackage = Read<typeof systemPackage>;

const schema = v.object({ os: v.string(), osVersion: v.string(), packages: v.array(systemPackage) });
type SystemPackageFacts = Read<typeof schema>;

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

/** Evaluates each package separately; conditions and messages are templates, such as `{{ not .IsInstalled }}`. */
export const systemPackages: Check<SystemPackageFacts> = {
  kind: 'systemPackages',
  defaultName: 'packages',
  isProgram: true,
  settings: SETTINGS,
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
      const limits = { outputLimit: DETAILS_LIMIT };
      await runCollectorProgram(command, [...args, name], host, limits, ({ status, stdout, stderr }) => {
        packages.push({ name, details: stdout, exitCode: status, error: stderr });
      });
    }
    return { os, osVersion, packages };
  },
  facts: schema,
  title: 'System Packages',
  analyze: (facts, { outcomes }: AnalyzerSpec): readonly AnalyzerResult[] =>
    facts.packages.flatMap((one) => {
      const data = dataOf(one, facts);
      const match = outcomes.find((outcome) => inOutcome(outcome, () => holds(outcome.when, data)));
      if (match === undefined) return [];
      const message = inOutcome(match, () => messageOf(match.message, data));
      return [{ verdict: match.verdict, message, uri: match.uri }];
    }),
};

function holds(when: string, data: ValueMap): boolean {
  if (when === '') return true;
  const truth = parseTruth(messageOf(when, data));
  if (truth === undefined) throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} is neither true nor false`);
  return truth;
}

function dataOf({ name, details, exitCode, error }: SystemPackage, { os, osVersion }: SystemPackageFacts): ValueMap {
  const [major, minor] = osVersion.split('.').map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : 0));
  return {
    OS: os,
    OSVersion: osVersion,
    OSVersionMajor: major ?? 0,
    OSVersionMinor: minor ?? 0,
    Name: name,
    Error: error,
    ExitCode: String(exitCode),
    IsInstalled: error === '' && exitCode === 0 && !/not installed|No matching Packages/.test(details),
    ...fieldsOf(details),
  };
}

/** `Key-Name: value` of dpkg and rpm, as `KeyName`. */
function fieldsOf(details: string): ValueMap {
  return Object.fromEntries(
    [...details.matchAll(/^(\p{Lu}[^:\n]*):(.*)$/gmu)].flatMap(([, key = '', value = '']) => {
      const name = key.replaceAll(/[ -]/g, '');
      return value.trim() === '' ? [] : [[name, value.trim()] as const];
    }),
  );
}
