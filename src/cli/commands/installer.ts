/** `curlew installer`: validates, merges and resolves installer specs. */
import {
  mergeSpecs,
  resolveSpec,
  specId,
  specVariables,
  validateSpec,
  type Environment,
  type Identified,
  type InstallerRequest,
  type Merged,
  type ResolvedSpec,
  type Validated,
} from '../../app/installer.ts';
import type { Context } from '../../app/context.ts';
import { counted } from '../../core/counted.ts';
import { renderDiagnostic } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { assignment } from '../../spec/variables.ts';
import { command, type Arguments, type OptionSpecs, type OptionValues } from '../command.ts';
import { RUN_OPTIONS } from '../node-options.ts';
import { STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { columns } from '../render/columns.ts';
import { paintDiagnostic, type Paint } from '../render/paint.ts';

const DETAILS = `validate reports all mistakes in a spec at once, and exits with status 11 if one is an error. With --from, --bundle or --dir, it also reports versions that do not exist, and settings that the packages reject.

merge BASE OVERLAY prints the merged spec as YAML.

env prints the shell variables of a spec, as kURL's yamltobash writes them, quoted for bash: values are never executed. With --from, --bundle or --dir, it resolves versions first.

id prints the seven digits by which kURL identifies a spec, regardless of its name and the order of its keys.

resolve prints the version of each add-on, and the reason.

FLAGs are those of kURL's scripts, such as ha or labels=a=b; installer-spec-file=OVERLAY merges a second spec.`;

const { bundle, dir, from, release, set } = RUN_OPTIONS;

const OPTIONS = {
  set,
  filled: { type: 'boolean', help: 'env: print only variables with a value' },
  from: { ...from, help: 'validate, env, resolve: use a store, or a web server with a store' },
  release,
  bundle: { ...bundle, help: 'validate, env, resolve: use a bundle' },
  dir: { ...dir, help: 'validate, env, resolve: use an unpacked bundle' },
  ...STORE_OPTIONS,
  ...WEB_OPTIONS,
} satisfies OptionSpecs;

type InstallerResult = Validated | Merged | Environment | Identified | ResolvedSpec;

interface Verb {
  readonly run: (
    args: readonly string[],
    options: OptionValues<typeof OPTIONS>,
    context: Context,
  ) => Promise<InstallerResult>;
  /** The verb's options among `VERB_OPTIONS`. */
  readonly takes: readonly (typeof VERB_OPTIONS)[number][];
}

const SOURCES = ['from', 'release', 'bundle', 'dir'] as const;

/** Options of some verbs. All other options concern the store and the network, and every verb accepts them. */
const VERB_OPTIONS = ['set', 'filled', ...SOURCES] as const;

export const VERBS: Readonly<Record<string, Verb>> = {
  validate: {
    run: async (args, options, context) => validateSpec({ ...options, ...specOf(args) }, context),
    takes: ['set', ...SOURCES],
  },
  merge: {
    run: async ([base, overlay, ...more], _, context) => {
      if (base !== undefined && overlay !== undefined && more.length === 0)
        return mergeSpecs({ base, overlay }, context);
      throw usage('merge requires a base and an overlay');
    },
    takes: [],
  },
  env: {
    run: async (args, options, context) => specVariables({ ...options, ...specOf(args) }, context),
    takes: VERB_OPTIONS,
  },
  id: { run: async (args, _, context) => specId(specOf(args), context), takes: [] },
  resolve: {
    run: async (args, options, context) => resolveSpec({ ...options, ...specOf(args) }, context),
    takes: ['set', ...SOURCES],
  },
};

function specOf([spec, ...flags]: readonly string[]): InstallerRequest {
  if (spec === undefined) throw usage('specify an installer spec');
  return { spec, flags };
}

function usage(what: string): CurlewError {
  return new CurlewError('USAGE', `curlew installer: ${what}`, { hint: 'curlew installer --help lists the verbs' });
}

export const installerCommand = command({
  name: 'installer',
  operands: 'validate|merge|env|id|resolve SPEC [FLAG…]',
  details: DETAILS,
  examples: [
    'curlew installer validate installer.yaml',
    'curlew installer validate installer.yaml --from /srv/dist',
    'curlew installer merge installer.yaml site.yaml > merged.yaml',
    'curlew installer env installer.yaml ha installer-spec-file=site.yaml --filled',
    'curlew installer id installer.yaml',
    'curlew installer resolve installer.yaml --from /srv/dist',
  ],
  options: OPTIONS,
  run: runVerb,
  render: (result, _, paint) => renderResult(result, paint),
  exitCode: (result) => (result.verb === 'validate' && !result.valid ? ERROR_CODES.SPEC_INVALID : 0),
});

async function runVerb(
  { operands: [name = '', ...args], options }: Arguments<typeof OPTIONS>,
  context: Context,
): Promise<InstallerResult> {
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (verb === undefined) {
    const near = nearest(name, Object.keys(VERBS));
    const known = Object.keys(VERBS).join(', ');
    throw new CurlewError('USAGE', name === '' ? `specify a verb: ${known}` : `unknown verb ${JSON.stringify(name)}`, {
      hint: near === undefined ? `verbs: ${known}` : `did you mean ${near}?`,
    });
  }
  const wrong = VERB_OPTIONS.find((option) => {
    const given = [options[option] ?? []].flat().some((value) => value !== false);
    return given && !verb.takes.includes(option);
  });
  if (wrong !== undefined) throw new CurlewError('USAGE', `curlew installer ${name} does not accept --${wrong}`);
  return verb.run(args, options, context);
}

function renderResult(result: InstallerResult, paint: Paint): string {
  switch (result.verb) {
    case 'validate':
      return renderFindings(result, paint);
    case 'merge':
      return result.yaml.trimEnd();
    case 'id':
      return result.id;
    case 'env':
      return Object.entries(result.variables)
        .map(([name, value]) => assignment(name, value))
        .join('\n');
    case 'resolve':
      return columns(result.addons.map(({ name, version, because }) => [name, version, because])).join('\n');
  }
}

function renderFindings({ files, valid, addons, diagnostics }: Validated, paint: Paint): string {
  const count = (severity: string, thing: string): readonly string[] => {
    const number = diagnostics.filter((one) => one.severity === severity).length;
    return number === 0 ? [] : [counted(number, thing)];
  };
  const sums = [...count('error', 'error'), ...count('warning', 'warning'), ...count('info', 'remark')];
  const all = [valid ? `valid, ${counted(addons, 'add-on')}` : 'not valid', ...sums];
  return [
    ...diagnostics.map((one) => paintDiagnostic(renderDiagnostic(one, one.source), one.severity, paint)),
    `${files.join(' + ')}: ${all.join(', ')}`,
  ].join('\n');
}
