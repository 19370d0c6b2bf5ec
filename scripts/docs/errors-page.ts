/** The index of error codes, generated from the table in src/core/errors.ts. */
import { ERRORS } from '../../src/core/errors.ts';

const INTRODUCTION = `# Error codes

Every failure of curlew has one of these codes. It is the first word after \`error\`, the field \`code\` of \`--json\` and of
[CurlewError](library.md), and determines the exit status. \`curlew help CODE\` shows the same text. [Troubleshooting](troubleshooting.md)
begins with messages instead of codes.

Exit status 0 means done, 1 a bug in curlew, and 2 that a command waits for another step ([cli.md](cli.md#exit-status)). Findings in
add-ons have rules instead of codes: [manifest.md](manifest.md#rules).`;

export function errorsPage(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status }]) => `| ${status} | [\`${code}\`](#${code.toLowerCase()}) |`,
  );
  const sections = Object.entries(ERRORS).map(
    ([code, { status, cause, cure }]) => `## ${code}\n\nExit status ${status}. ${cause}\n\n${cure}`,
  );
  return (
    [INTRODUCTION, ['| status | code |', '| --- | --- |', ...rows].join('\n'), ...sections, ''].join('\n\n').trimEnd() +
    '\n'
  );
}
