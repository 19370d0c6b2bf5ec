/** The builder in provenance: named by the operator, or the CI service that this runs on. */
import { CurlewError, redact } from '../core/errors.ts';
import { isCommit } from '../store/release/inputs.ts';
import type { Builder } from '../build/sbom/provenance.ts';
import type { Context } from '../core/context.ts';
import type { BuilderRequest } from './requests/archive.ts';

/** For an unnamed machine: nothing can be concluded from it. */
const UNNAMED = 'urn:curlew:builder:unnamed';

type Env = Context['env'];

/** `recorded` is the commit that publishing recorded with a package; the request takes precedence. */
export function builderOf(
  request: BuilderRequest,
  { env }: Pick<Context, 'env'>,
  recorded: string | undefined,
): Builder {
  const found = serviceBuilder(env);
  const commit = request.commit ?? recorded ?? found.commit;
  if (commit !== undefined && !isCommit(commit)) {
    throw new CurlewError('USAGE', `--commit ${JSON.stringify(commit.slice(0, 80))}: not a git commit`);
  }
  return { ...found, id: builderId(request.builder) ?? found.id, commit };
}

/** The CI job from the environment. */
export function serviceBuilder(env: Env): Builder {
  const found = onGithub(env) ?? onGitlab(env) ?? { id: UNNAMED, invocation: undefined, repository: undefined };
  return { ...found, commit: found.commit };
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
