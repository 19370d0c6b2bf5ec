/** `curlew preflight`: runs the host preflights of a spec and its add-ons. */
import { PREFLIGHT } from '../../requests/node.ts';
import type { PreflightReport } from '../../app/preflight.ts';
import { countsText, resultLines, TAGS } from '../../runtime/preflight/report.ts';
import { FLAGS } from '../../spec/flags.ts';
import { commandFor } from '../command.ts';
import { screen } from '../render/columns.ts';
import type { Paint } from '../render/paint.ts';

const DETAILS = `Checks this machine, and prints [PASS], [WARN] or [FAIL] for each check. Changes nothing.

SPEC is a HostPreflight of Troubleshoot (troubleshoot.sh/v1beta2), in which {{kurl …}} is expanded first. With --bundle, --dir, --from or --installer, runs the checks that install runs first: the built-in checks (if the spec contains Kubernetes), the checks in the installer spec (kurl.hostPreflights), those of its add-ons, and a check for host packages that the operator must install. Rejects a bundle without the host packages of this machine's system. Otherwise only the SPECs are evaluated. FLAG is one of kURL's flags, as in install: installer-spec-file=FILE, primary-host=HOST.

--save-facts saves the collected facts, and --from uses such a file instead of this machine, so that the checks can be evaluated again on another machine.

Exit status: 0 all checks passed, 1 a check failed, 2 warnings with --ignore-warnings, 3 warnings.`;

export const command = commandFor(PREFLIGHT, {
  details: DETAILS,
  examples: [
    'curlew preflight --bundle bundle.tar.gz',
    'curlew preflight host-preflight.yaml --save-facts facts.json',
    'curlew preflight --from facts.json host-preflight.yaml --json',
  ],
  run: async ({ request }, context): Promise<PreflightReport> => {
    // The operands are sorted here: any of them may be a flag.
    const isFlag = (text: string): boolean => Object.hasOwn(FLAGS, text.split('=', 1)[0] ?? '');
    const specs = request.specs.filter((text) => !isFlag(text));
    const { preflight } = await import('../../app/preflight.ts');
    return preflight({ ...request, specs, flags: request.specs.filter(isFlag) }, context);
  },
  render: (report, { request }, paint) => renderReport(report, request.ignoreWarnings, paint),
  exitCode: ({ status }) => status,
});

function renderReport({ results, counts }: PreflightReport, ignoreWarnings: boolean, paint: Paint): string {
  const colors = { pass: paint.info, warn: paint.warning, fail: paint.error };
  const lines = results.flatMap((result) => {
    const tag = TAGS[result.verdict];
    const [first = '', ...rest] = resultLines(result, { width: screen.columns });
    return [`${colors[result.verdict](tag)}${first.slice(tag.length)}`, ...rest];
  });
  const ignored = counts.fail === 0 && counts.warn > 0 && ignoreWarnings;
  return [...lines, countsText(counts), ...(ignored ? ['Warnings ignored by CLI flag "ignore-warnings"'] : [])].join(
    '\n',
  );
}
