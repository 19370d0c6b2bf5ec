/** `curlew preflight`: host preflights of a spec and its add-ons, by themselves. */
import { DOWNGRADE_OPTION, SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { readGivenFile, writeStateFile } from '../../platform/files/state-file.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { FLAGS, type GivenFlags } from '../../spec/flags.ts';
import { hookVariables } from '../../spec/variables.ts';
import { assembleSpecs, SPEC_LIMIT, type AddonSpec, type SpecText } from '../../runtime/preflight/assemble.ts';
import { FACTS_LIMIT, formatFacts, parseFacts } from '../../runtime/preflight/facts.ts';
import { parseDuration } from '../../runtime/preflight/go-words.ts';
import { countsOf, statusOf, type Counts, type PreflightResult } from '../../runtime/preflight/judge.ts';
import { resultLines, savedReport, TAGS } from '../../runtime/preflight/report.ts';
import { judged, runPreflights } from '../../runtime/preflight/run.ts';
import type { Situation } from '../../runtime/preflight/situation.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { RUN_OPTIONS } from '../node-run.ts';
import { flagsOf, judgeSettings, specOf } from '../node-spec.ts';
import { clusterFinder } from '../node-cluster.ts';
import { placesOf } from '../node-target.ts';
import { IGNORE_OPTION } from '../node-checks.ts';
import { ownScripts } from '../../app/own-scripts.ts';
import { checkNodesFor, countsText, EXCLUDED, ignoringSome, packageResults } from '../../runtime/host/host-checks.ts';
import { requireSystemOf } from '../../runtime/host/own-system.ts';
import { addonSpecs, versionsOf } from '../../runtime/host/preflight-specs.ts';
import { missingPackages } from '../../runtime/host/required-packages.ts';
import type { SourcePackage } from '../../runtime/node/source.ts';
import type { Paint } from '../render/paint.ts';
import { toolVersion } from '../../app/version.ts';
import { noteWarnings, openSource } from '../../app/ports/run-source.ts';

const DETAILS = `Looks at this machine and says whether it is fit: [PASS], [WARN] or [FAIL], a line each. Nothing is changed.

SPEC is a HostPreflight of Troubleshoot (troubleshoot.sh/v1beta2); in its text, {{kurl …}} is carried out first. With --bundle, --dir, --from or --installer the built-in checks, the one in the installer spec (kurl.hostPreflights) and those of its add-ons come before; these are the checks of install, so the built-in ones, which are of a node of Kubernetes, need that in the spec; host packages that add-ons leave to the operator are looked for; a bundle without the host packages of this machine's system is refused. Without any of them only the SPECs are judged. FLAG is one of kURL's, as install takes them: installer-spec-file=FILE, primary-host=HOST.

With --save-facts what was found is kept, and --from takes such a file in place of looking at the machine: its checks can be judged again, elsewhere.

Exit status: 0 all is well, 1 something failed, 2 warnings with --ignore-warnings, 3 warnings.`;

interface PreflightReport {
  readonly status: 0 | 1 | 2 | 3;
  readonly counts: Counts;
  readonly results: readonly PreflightResult[];
}

const { bundle, dir, from, release, installer, set, 'install-dir': installDir, root } = RUN_OPTIONS;

export const preflight: Command<PreflightReport> = {
  name: 'preflight',
  summary: 'Check whether this machine is fit for the add-ons of a spec',
  operands: '[SPEC…] [FLAG…]',
  details: DETAILS,
  examples: [
    'curlew preflight --bundle bundle.tar.gz',
    'curlew preflight host-preflight.yaml --save-facts facts.json',
    'curlew preflight --from facts.json host-preflight.yaml --json',
  ],
  options: {
    bundle,
    dir: { ...dir, help: 'take them from an unpacked bundle' },
    from: { ...from, value: 'STORE|FACTS', help: 'take them from a store; or judge a file of facts' },
    release,
    installer,
    set,
    'install-dir': {
      ...installDir,
      help: `install folder, which has what a delta lacks (default: ${INSTALL_DIRECTORY})`,
    },
    root: { ...root, help: 'for trials, as install has it: the install folder lies below DIR; no built-in checks' },
    'is-join': { type: 'boolean', help: 'the machine joins a cluster' },
    'is-upgrade': { type: 'boolean', help: 'the machine is part of the cluster already' },
    'is-primary': { type: 'string', value: 'true|false', help: 'whether it becomes a primary (default: true)' },
    'primary-host': { type: 'string', multiple: true, value: 'HOST', help: 'another primary of the cluster' },
    'secondary-host': { type: 'string', multiple: true, value: 'HOST', help: 'another node that is no primary' },
    'exclude-builtin': { type: 'boolean', help: 'leave the built-in checks out' },
    ...IGNORE_OPTION,
    'ignore-warnings': { type: 'boolean', help: 'warnings end with status 2 in place of 3' },
    timeout: { type: 'string', value: 'TIME', help: 'give a check up after this time: 10s, 2m (default: its own)' },
    save: { type: 'string', value: 'FILE', help: 'keep the results as text, too' },
    'save-facts': { type: 'string', value: 'FILE', help: 'keep what was found, to be judged later' },
    ...SIGNED_OPTIONS,
    ...DOWNGRADE_OPTION,
    ...STORE_OPTIONS,
    ...WEB_OPTIONS,
  },
  run: runCommand,
  render: ({ results, counts }, args, paint) => renderReport(results, counts, args, paint),
  exitCode: ({ status }) => status,
};

async function runCommand(given: Arguments, context: CommandContext): Promise<PreflightReport> {
  const { cwd, env, report, signal } = context;
  const isFlag = (word: string): boolean => Object.hasOwn(FLAGS, word.split('=', 1)[0] ?? '');
  const { flags, args } = flagsOf({ ...given, positionals: given.positionals.filter(isFlag) }, context);
  const files = given.positionals.filter((word) => !isFlag(word));
  const { factsFile, places } = await sortFrom(args, context);
  const limitMs = limitOf(args);
  const wanted = await readSituation(withPlaces(args, places), flags, context);
  const { situation, addons, packages, required } = wanted;
  // Facts are of another machine.
  const library = { scripts: ownScripts(), env, signal };
  if (factsFile === undefined) await requireSystemOf(packages, library);
  const missing = factsFile === undefined ? await missingPackages(required, library) : undefined;
  const others = await Promise.all(files.map(async (file) => readSpec(file, cwd)));
  if (situation.installer === undefined && others.length === 0) {
    throw usage('nothing to check: name a SPEC, or --bundle, --dir, --from or --installer');
  }
  // A trial is not for the machine that it runs on.
  const builtIn = !args.flag('exclude-builtin') && args.text('root') === undefined;
  const { specs, warnings } = assembleSpecs(situation, { addons, others, builtIn });
  noteWarnings(report, warnings);
  const tool = toolVersion();
  const outcome =
    factsFile === undefined
      ? await runPreflights(specs, { root: '/', env, tool, limitMs }, { report, signal })
      : judged(
          specs,
          parseFacts((await readLimited(resolve(cwd, factsFile), FACTS_LIMIT)).toString('utf8'), factsFile),
        );
  const { facts } = outcome;
  // Facts are of another machine, whose cluster is not this one.
  const nodes = builtIn && factsFile === undefined ? await nodeResults(wanted, args, context) : [];
  const made = ignoringSome([...outcome.results, ...nodes], args.texts('ignore'), { report });
  const results = [...packageResults(missing), ...made];
  const counts = countsOf(results);
  if (missing !== undefined) {
    report({ type: 'note', level: 'info', text: `install the missing host packages: ${missing.command}` });
  }
  const [factsTo, textTo] = [args.text('save-facts'), args.text('save')];
  if (factsTo !== undefined) await writeStateFile(resolve(cwd, factsTo), formatFacts(facts));
  if (textTo !== undefined) {
    const text = savedReport({ tool: `curlew ${tool}`, options: optionWords(situation), results });
    await writeStateFile(resolve(cwd, textTo), text);
  }
  return { status: statusOf(counts, args.flag('ignore-warnings')), counts, results };
}

function usage(what: string): CurlewError {
  return new CurlewError('USAGE', what, { hint: 'curlew preflight --help lists its options' });
}

/** Whether all nodes of the cluster are ready, where an install on this machine would ask. */
async function nodeResults(
  { situation, required }: Wanted,
  args: Arguments,
  context: CommandContext,
): Promise<readonly PreflightResult[]> {
  const { installer: spec, versions, isPrimary: primary, isJoin } = situation;
  if (spec === undefined || !primary || isJoin) return [];
  const variables = hookVariables(spec, versions);
  if (variables.some(([name, text]) => name === EXCLUDED && text !== '')) return [];
  const settings = new Map(spec.addons.map((addon) => [addon.name, addon.settings] as const));
  const packages = required.map((source) => ({ source, settings: settings.get(source.ref.name) ?? {} }));
  const { directory } = placesOf(args, context);
  try {
    return await checkNodesFor(packages, { directory, variables, find: clusterFinder(args, context) });
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    const text = `the nodes of the cluster were not asked, which an install would do: ${error.message}`;
    context.report({ type: 'note', level: 'warning', text });
    return [];
  }
}

/** A file is facts; a folder or an address is a store. */
async function sortFrom(
  args: Arguments,
  { cwd }: CommandContext,
): Promise<{ readonly factsFile: string | undefined; readonly places: readonly string[] }> {
  const files: string[] = [];
  const places: string[] = [];
  for (const word of args.texts('from')) {
    const found = await stat(resolve(cwd, word)).catch(() => undefined);
    (found?.isFile() === true ? files : places).push(word);
  }
  if (files.length > 1) throw usage('--from can name one file of facts only');
  return { factsFile: files[0], places };
}

/** The same words, with these for `--from`. */
function withPlaces(args: Arguments, places: readonly string[]): Arguments {
  const options = { ...args.options, from: places } as unknown as Arguments['options'];
  return { ...args, options, texts: (option) => (option === 'from' ? places : args.texts(option)) };
}

function limitOf(args: Arguments): number | undefined {
  const text = args.text('timeout');
  if (text === undefined) return undefined;
  const ns = parseDuration(text);
  if (ns === undefined || ns <= 0) throw usage(`--timeout ${JSON.stringify(text)} is no time such as 30s`);
  return ns / 1e6;
}

interface Wanted {
  readonly situation: Situation;
  readonly addons: readonly AddonSpec[];
  /** All that the machine is to have, with what comes along. */
  readonly packages: readonly SourcePackage[];
  /** Those of the spec alone. */
  readonly required: readonly SourcePackage[];
}

async function readSituation(args: Arguments, flags: GivenFlags, context: CommandContext): Promise<Wanted> {
  const bare: Situation = {
    installer: undefined,
    versions: new Map(),
    isPrimary: isPrimary(args),
    isJoin: args.flag('is-join'),
    isUpgrade: args.flag('is-upgrade'),
    primaryHosts: [...args.texts('primary-host'), ...hostsOf(flags, 'PRIMARY_HOST')],
    secondaryHosts: [...args.texts('secondary-host'), ...hostsOf(flags, 'SECONDARY_HOST')],
  };
  const hasSource =
    args.text('bundle') !== undefined || args.text('dir') !== undefined || args.texts('from').length > 0;
  if (!hasSource && args.text('installer') === undefined && flags.overlay === undefined) {
    if (flags.settings.length > 0) throw usage('flags need a spec: --bundle, --dir, --from or --installer');
    return { situation: bare, addons: [], packages: [], required: [] };
  }
  if (!hasSource) {
    const source = { installerText: undefined, airgap: false };
    const { installer: spec } = await specOf(args, context, { source, flags, recorded: undefined });
    return { situation: { ...bare, installer: spec }, addons: [], packages: [], required: [] };
  }
  const { directory } = placesOf(args, context);
  await using source = await openSource(args.options, context, { directory, remember: false });
  const { installer: spec } = await specOf(args, context, { source, flags, recorded: undefined });
  const packages = await source.choose(spec);
  judgeSettings(spec, packages, context);
  const situation = { ...bare, installer: spec, versions: versionsOf(packages) };
  const addons = await addonSpecs(packages, situation, context);
  const machine = (await source.offered(packages)).filter(({ role }) => role === 'machine');
  return { situation, addons, packages: [...packages, ...machine.map((one) => one.source)], required: packages };
}

/** Several are joined by commas. */
function hostsOf({ variables }: GivenFlags, name: string): readonly string[] {
  return (variables.get(name) ?? '').split(',').filter((host) => host !== '');
}

function isPrimary(args: Arguments): boolean {
  const word = args.text('is-primary') ?? 'true';
  if (word !== 'true' && word !== 'false') throw usage('--is-primary is true or false');
  return word === 'true';
}

async function readSpec(file: string, cwd: string): Promise<SpecText> {
  const text = await readGivenFile(resolve(cwd, file), SPEC_LIMIT);
  if (text !== undefined) return { file, text };
  const isFlag = file.includes('=');
  throw new CurlewError(
    'NOT_FOUND',
    `read ${isFlag ? file.split('=', 1)[0] : file}: no such file${isFlag ? ', and no flag' : ''}`,
    {
      hint: isFlag ? 'docs/kurl-compatibility.md lists the flags' : undefined,
    },
  );
}

function optionWords({
  isPrimary: primary,
  isJoin,
  isUpgrade,
  primaryHosts,
  secondaryHosts,
}: Situation): readonly string[] {
  return [
    `is-primary: ${primary}`,
    `is-join: ${isJoin}`,
    `is-upgrade: ${isUpgrade}`,
    ...primaryHosts.map((host) => `primary-host: ${host}`),
    ...secondaryHosts.map((host) => `secondary-host: ${host}`),
  ];
}

function renderReport(results: readonly PreflightResult[], counts: Counts, args: Arguments, paint: Paint): string {
  const colours = { pass: paint.info, warn: paint.warning, fail: paint.error };
  const lines = results.flatMap((result) => {
    const tag = TAGS[result.verdict];
    const [first = '', ...rest] = resultLines(result);
    return [`${colours[result.verdict](tag)}${first.slice(tag.length)}`, ...rest];
  });
  const ignored = counts.fail === 0 && counts.warn > 0 && args.flag('ignore-warnings');
  return [...lines, countsText(counts), ...(ignored ? ['Warnings ignored by CLI flag "ignore-warnings"'] : [])].join(
    '\n',
  );
}
