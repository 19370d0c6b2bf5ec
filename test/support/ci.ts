/** An add-on repository under git, and the steps of continuous integration run in it as a workflow runs them. */
import { execa } from 'execa';
import { join } from 'node:path';
import { PRODUCT } from './compiled.ts';
import { cleanEnvironment, type Outcome } from './curlew.ts';
import { tree, type Files, type Tree } from './tree.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The time is in New York; in UTC it is the next day. */
const DAY = '2026-11-20T23:30:00-0500';
const IDENTITY = ['-c', 'user.name=a', '-c', 'user.email=a@b.example', '-c', 'init.defaultBranch=main'];

export async function git(box: Tree, ...words: readonly string[]): Promise<string> {
  const { stdout } = await execa('git', [...IDENTITY, ...words], {
    cwd: box.path,
    // The same files make the same commits.
    env: { HOME: box.path, GIT_AUTHOR_DATE: DAY, GIT_COMMITTER_DATE: DAY },
  });
  return stdout;
}

export async function commit(box: Tree, message: string): Promise<void> {
  await git(box, 'add', '.');
  await git(box, 'commit', '--quiet', '--message', message);
}

/** A repository with these files in its one commit. */
export async function repository(files: Files): Promise<Tree> {
  const box = await tree({ '.gitignore': '.curlew/\n*.ignored\n', ...files });
  await git(box, 'init', '--quiet');
  await commit(box, 'first');
  return box;
}

/**
 * Runs `scripts/ci/<first word>` in the repository, and returns what it printed, whatever its status. `home` is the curlew
 * that it uses.
 */
export async function ci(
  box: Tree,
  [name = '', ...words]: readonly string[],
  env: Readonly<Record<string, string>> = {},
  home: string = join(ROOT, PRODUCT),
): Promise<Outcome> {
  const {
    exitCode = 255,
    stdout,
    stderr,
  } = await execa(join(home, 'scripts/ci', name), words, {
    cwd: box.path,
    env: cleanEnvironment({ cwd: box.path, env }),
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  return { exitCode, stdout, stderr };
}

/** Files of an add-on that needs nothing from elsewhere. */
export function addonFiles(name: string, version = '1.0.0', text = 'hello'): Files {
  const folder = `addons/${name}/${version}`;
  return {
    [`${folder}/Manifest`]: 'asset page ./page.html\n',
    [`${folder}/page.html`]: `<p>${text}</p>\n`,
    [`${folder}/install.sh`]: `# shellcheck shell=bash\n${name}() { echo "port $${name.toUpperCase()}_PORT"; }\n${name}_already_applied() { :; }\n`,
  };
}
