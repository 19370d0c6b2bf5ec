/** Writes provenance statements of packages and bundles, signed if a key is named. */
import type { KeyObject } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { type Builder, provenanceOf } from '../build/sbom/provenance.ts';
import { describeDelta } from '../ship/bundle/delta/delta-read.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError, redact } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { digestAsStep } from '../formats/archive/digest-all.ts';
import { type Statement, formatStatement, signStatement } from '../formats/signing/statement.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { describeArchive } from '../steps/archives/describe-archive.ts';
import { documentPath, openAnywhere, requireUnwritten } from '../steps/archives/open-anywhere.ts';
import { verifyWhole } from '../steps/archives/verify-whole.ts';
import type { Context } from '../core/context.ts';
import { readSigningKey } from '../steps/open/trust.ts';
import { type BuilderRequest, PROVENANCE, type ProvenanceRequest } from '../requests/archive.ts';
import { useCase } from '../core/request.ts';
import { isCommit } from '../ship/release/release-inputs.ts';

export interface Stated {
  readonly path: string;
  /** File of the statement, or of its signature bundle. */
  readonly provenance: string;
  readonly sha256: Digest;
  readonly builder: string;
  readonly signed: boolean;
}

/** Verifies each file, then writes a statement next to it; for an address, into the current folder. */
export const provenance = useCase(PROVENANCE, async (request, context): Promise<readonly Stated[]> => {
  const { cwd } = context;
  const { files, sign, output, force = false } = request;
  if (output !== undefined && files.length > 1) {
    throw new CurlewError('USAGE', 'curlew provenance: specify files, and only one with --output', {
      hint: 'curlew provenance FILE…',
    });
  }
  // Invalid arguments are refused before anything is read.
  builderOf(request, context, undefined);
  const key = sign === undefined ? undefined : await readSigningKey(sign, context);
  if (output !== undefined) await refuseExisting(resolve(cwd, output), force);
  const stated: Stated[] = [];
  for (const path of files) {
    const { statement, sha256, builder, name } = await stateOf(path, request, context);
    const file = output ?? `${documentPath(path, name)}.provenance${key === undefined ? '' : '.sigstore'}.json`;
    requireUnwritten(
      file,
      stated.map((one) => one.provenance),
    );
    const text = textOf(statement, key);
    if (output === undefined) await writeStateFile(resolve(cwd, file), text, 0o644);
    else await writeText(resolve(cwd, output), text, { force });
    stated.push({ path, provenance: file, sha256, builder: builder.id, signed: key !== undefined });
  }
  return stated;
});

function textOf(statement: Statement, key: KeyObject | undefined): string {
  return key === undefined ? `${formatStatement(statement)}\n` : signStatement(statement, key);
}

async function stateOf(path: string, request: ProvenanceRequest, context: Context) {
  const { signal } = context;
  await using source = await openAnywhere(path, request, context);
  const index = await verifyWhole(source, path, context);
  if ((await describeDelta(source, index, { signal })) !== undefined) {
    throw new CurlewError('UNSUPPORTED', `cannot write the provenance of ${path}: it is a delta`, {
      hint: 'use the whole bundle: curlew apply creates it',
    });
  }
  const described = await describeArchive(source, { index, directory: INSTALL_DIRECTORY, signal });
  const sha256 = await digestAsStep(source, context);
  const builder = builderOf(request, context, source.commit);
  const name = basename(source.whole);
  return { statement: provenanceOf({ name, sha256 }, described, builder), sha256, builder, name };
}

/** For an unnamed machine: nothing can be concluded from it. */
const UNNAMED = 'urn:curlew:builder:unnamed';

type Env = Context['env'];

/** `recorded` is the commit that publishing recorded with a package; the request takes precedence. */
function builderOf(request: BuilderRequest, { env }: Pick<Context, 'env'>, recorded: string | undefined): Builder {
  const service = serviceBuilder(env);
  const commit = request.commit ?? recorded ?? service.commit;
  if (commit !== undefined && !isCommit(commit)) {
    throw new CurlewError('USAGE', `--commit ${JSON.stringify(commit.slice(0, 80))}: not a git commit`);
  }
  return { ...service, id: builderId(request.builder) ?? service.id, commit };
}

/** The CI job from the environment. */
export function serviceBuilder(env: Env): Builder {
  const service = onGithub(env) ?? onGitlab(env) ?? { id: UNNAMED, invocation: undefined, repository: undefined };
  return { ...service, commit: service.commit };
}

function builderId(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!/^[a-z][a-z0-9+.-]*:[\x21-\x7e]+$/i.test(text)) {
    throw new CurlewError('USAGE', `--builder ${JSON.stringify(text.slice(0, 80))}: not a URI`, {
      hint: 'for example https://ci.example/release-builder',
    });
  }
  if (redact(text) === text) return text;
  throw new CurlewError('USAGE', `--builder ${text}: must not contain user info or a query`);
}

type Found = Omit<Builder, 'commit'> & { readonly commit?: string | undefined };

/** GitHub Actions, and services that set the same variables. */
function onGithub(env: Env): Found | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_WORKFLOW_REF: workflow, GITHUB_REPOSITORY: repository } = env;
  if (env['GITHUB_ACTIONS'] !== 'true' || !isWeb(server) || !workflow || !repository) return undefined;
  const [run, attempt, ref] = [env['GITHUB_RUN_ID'], env['GITHUB_RUN_ATTEMPT'] ?? '1', env['GITHUB_REF']];
  const home = `${redact(server)}/${repository}`;
  return {
    id: `${redact(server)}/${workflow}`,
    invocation: run === undefined ? undefined : `${home}/actions/runs/${run}/attempts/${attempt}`,
    repository: `git+${home}${ref === undefined ? '' : `@${ref}`}`,
    commit: env['GITHUB_SHA'],
  };
}

function onGitlab(env: Env): Found | undefined {
  const { CI_PROJECT_URL: project, CI_RUNNER_ID: runner, CI_JOB_URL: job, CI_COMMIT_REF_NAME: ref } = env;
  if (env['GITLAB_CI'] !== 'true' || !isWeb(project) || !runner) return undefined;
  return {
    id: `${redact(project)}/-/runners/${runner}`,
    invocation: isWeb(job) ? redact(job) : undefined,
    repository: `git+${redact(project)}${ref === undefined ? '' : `@${ref}`}`,
    commit: env['CI_COMMIT_SHA'],
  };
}

function isWeb(text: string | undefined): text is string {
  return text !== undefined && /^https?:\/\//i.test(text);
}
