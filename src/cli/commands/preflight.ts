/** `curlew preflight`: host preflights of a spec and its add-ons, by themselves. */
import { preflight, type PreflightReport } from '../../app/preflight.ts';
import { CurlewError } from '../../core/errors.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { countsText } from '../../runtime/host/host-checks.ts';
import { parseDuration } from '../../runtime/preflight/go-notation.ts';
import { resultLines, TAGS } from '../../runtime/preflight/report.ts';
import { FLAGS } from '../../spec/flags.ts';
import { command } from '../command.ts';
import { RUN_OPTIONS } from '../node-options.ts';
import { DOWNGRADE_OPTION, SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import type { Paint } from '../render/paint.ts';

const DETAILS = `Looks at this machine and says whether it is fit: [PASS], [WARN] or [FAIL], a line each. Nothing is changed.

SPEC is a HostPreflight of Troubleshoot (troubleshoot.sh/v1beta2); in its text, {{kurl …}} is carried out first. With --bundle, --dir, --from or --installer the built-in checks, the one in the installer spec (kurl.hostPreflights) and those of its add-ons come before; these are the checks of install, so the built-in ones, which are of a node of Kubernetes, need that in the spec; host packages that add-ons leave to the operator are looked for; a bundle without the host packages of this machine's system is refused. Without any of them only the SPECs are judged. FLAG is one of kURL's, as install takes them: installer-spec-file=FILE, primary-host=HOST.

With --save-facts what was found is kept, and --from takes such a file in place of looking at the machine: its checks can be judged again, elsewhere.

Exit status: 0 all is well, 1 something failed, 2 warnings with --ignore-warnings, 3 warnings.`;

function trueOrFalse(word: string): boolean {
  if (word === 'true' || word === 'false') return word === 'true';
  throw new CurlewError('USAGE', '--is-primary is true or false');
}

function milliseconds(text: string): number {
  const ns = parseDuration(text);
  if (ns !== undefined && ns > 0) return ns / 1e6;
  throw new CurlewError('USAGE', `--timeout ${JSON.stringify(text)} is no time such as 30s`);
}

const { bundle, dir, from, release, installer, set, 'install-dir': installDir, root } = RUN_OPTIONS;

export const preflightCommand = command({
  name: 'preflight',
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
    'is-primary': {
      type: 'string',
      read: trueOrFalse,
      value: 'true|false',
      help: 'whether it becomes a primary (default: true)',
    },
    'primary-host': { type: 'string', multiple: true, value: 'HOST', help: 'another primary of the cluster' },
    'secondary-host': { type: 'string', multiple: true, value: 'HOST', help: 'another node that is no primary' },
    'exclude-builtin': { type: 'boolean', help: 'leave the built-in checks out' },
    ignore: RUN_OPTIONS.ignore,
    'ignore-warnings': { type: 'boolean', help: 'warnings end with status 2 in place of 3' },
    timeout: {
      type: 'string',
      read: milliseconds,
      value: 'TIME',
      help: 'give a check up after this time: 10s, 2m (default: its own)',
    },
    save: { type: 'string', value: 'FILE', help: 'keep the results as text, too' },
    'save-facts': { type: 'string', value: 'FILE', help: 'keep what was found, to be judged later' },
    ...SIGNED_OPTIONS,
    ...DOWNGRADE_OPTION,
    ...STORE_OPTIONS,
    ...WEB_OPTIONS,
  },
  run: async ({ operands, options }, context): Promise<PreflightReport> => {
    const isFlag = (word: string): boolean => Object.hasOwn(FLAGS, word.split('=', 1)[0] ?? '');
    const specs = operands.filter((word) => !isFlag(word));
    return preflight({ specs, flags: operands.filter(isFlag), ...options }, context);
  },
  render: (report, { options }, paint) => renderReport(report, options.ignoreWarnings, paint),
  exitCode: ({ status }) => status,
});

function renderReport({ results, counts }: PreflightReport, ignoreWarnings: boolean, paint: Paint): string {
  const colours = { pass: paint.info, warn: paint.warning, fail: paint.error };
  const lines = results.flatMap((result) => {
    const tag = TAGS[result.verdict];
    const [first = '', ...rest] = resultLines(result);
    return [`${colours[result.verdict](tag)}${first.slice(tag.length)}`, ...rest];
  });
  const ignored = counts.fail === 0 && counts.warn > 0 && ignoreWarnings;
  return [...lines, countsText(counts), ...(ignored ? ['Warnings ignored by CLI flag "ignore-warnings"'] : [])].join(
    '\n',
  );
}
