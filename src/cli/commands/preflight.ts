/** `curlew preflight`: runs the host preflights of a spec and its add-ons. */
import type { PreflightReport } from '../../app/preflight.ts';
import { CurlewError } from '../../core/errors.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { parseDuration } from '../../runtime/preflight/go-notation.ts';
import { countsText, resultLines, TAGS } from '../../runtime/preflight/report.ts';
import { FLAGS } from '../../spec/flags.ts';
import { command, useCase } from '../command.ts';
import { RUN_OPTIONS } from '../node-options.ts';
import { DOWNGRADE_OPTION, SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import type { Paint } from '../render/paint.ts';

const preflight = useCase(async () => (await import('../../app/preflight.ts')).preflight);

const DETAILS = `Checks this machine, and prints [PASS], [WARN] or [FAIL] for each check. Changes nothing.

SPEC is a HostPreflight of Troubleshoot (troubleshoot.sh/v1beta2), in which {{kurl …}} is expanded first. With --bundle, --dir, --from or --installer, runs the checks that install runs first: the built-in checks (if the spec contains Kubernetes), the checks in the installer spec (kurl.hostPreflights), those of its add-ons, and a check for host packages that the operator must install. Rejects a bundle without the host packages of this machine's system. Otherwise only the SPECs are evaluated. FLAG is one of kURL's flags, as in install: installer-spec-file=FILE, primary-host=HOST.

--save-facts saves the collected facts, and --from uses such a file instead of this machine, so that the checks can be evaluated again on another machine.

Exit status: 0 all checks passed, 1 a check failed, 2 warnings with --ignore-warnings, 3 warnings.`;

function trueOrFalse(word: string): boolean {
  if (word === 'true' || word === 'false') return word === 'true';
  throw new CurlewError('USAGE', '--is-primary must be true or false');
}

function milliseconds(text: string): number {
  const ns = parseDuration(text);
  if (ns !== undefined && ns > 0) return ns / 1e6;
  throw new CurlewError('USAGE', `--timeout ${JSON.stringify(text)} is not a duration such as 30s`);
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
    bundle: { ...bundle, help: 'use a bundle' },
    dir: { ...dir, help: 'use an unpacked bundle' },
    from: { ...from, value: 'STORE|FACTS', help: 'use a store, or evaluate a file of facts' },
    release,
    installer,
    set,
    'install-dir': {
      ...installDir,
      help: `install folder with the rest of a delta (default: ${INSTALL_DIRECTORY})`,
    },
    root: { ...root, help: 'for trials, as with install: the install folder is in DIR; no built-in checks' },
    'is-join': { type: 'boolean', help: 'the machine joins a cluster' },
    'is-upgrade': { type: 'boolean', help: 'the machine is already part of the cluster' },
    'is-primary': {
      type: 'string',
      read: trueOrFalse,
      value: 'true|false',
      help: 'whether the machine becomes a primary (default: true)',
    },
    'primary-host': { type: 'string', multiple: true, value: 'HOST', help: 'another primary of the cluster' },
    'secondary-host': { type: 'string', multiple: true, value: 'HOST', help: 'another node that is not a primary' },
    'exclude-builtin': { type: 'boolean', help: 'omit the built-in checks' },
    ignore: RUN_OPTIONS.ignore,
    'ignore-warnings': { type: 'boolean', help: 'exit with status 2 instead of 3 for warnings' },
    timeout: {
      type: 'string',
      read: milliseconds,
      value: 'TIME',
      help: "time limit of a check: 10s, 2m (default: the check's own)",
    },
    save: { type: 'string', value: 'FILE', help: 'also save the results as text' },
    'save-facts': { type: 'string', value: 'FILE', help: 'save the collected facts, for --from' },
    ...SIGNED_OPTIONS,
    ...DOWNGRADE_OPTION,
    ...STORE_OPTIONS,
    ...WEB_OPTIONS,
  },
  run: async ({ operands, options }, context): Promise<PreflightReport> => {
    const isFlag = (text: string): boolean => Object.hasOwn(FLAGS, text.split('=', 1)[0] ?? '');
    const specs = operands.filter((text) => !isFlag(text));
    return preflight({ specs, flags: operands.filter(isFlag), ...options }, context);
  },
  render: (report, { options }, paint) => renderReport(report, options.ignoreWarnings, paint),
  exitCode: ({ status }) => status,
});

function renderReport({ results, counts }: PreflightReport, ignoreWarnings: boolean, paint: Paint): string {
  const colors = { pass: paint.info, warn: paint.warning, fail: paint.error };
  const lines = results.flatMap((result) => {
    const tag = TAGS[result.verdict];
    const [first = '', ...rest] = resultLines(result);
    return [`${colors[result.verdict](tag)}${first.slice(tag.length)}`, ...rest];
  });
  const ignored = counts.fail === 0 && counts.warn > 0 && ignoreWarnings;
  return [...lines, countsText(counts), ...(ignored ? ['Warnings ignored by CLI flag "ignore-warnings"'] : [])].join(
    '\n',
  );
}
