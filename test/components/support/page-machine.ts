/**
 * The machine on which the shell blocks of a page are run as they stand there: files, processes and a network of its own, with the
 * programs of this one. What a page does to it ends with it.
 */
import { execa } from 'execa';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { shellQuote } from '../../../src/core/shell-word.ts';
import * as assert from '../../support/assert.ts';
import { BUILT_MAIN } from '../../support/built.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree, writeTree, type Files } from '../../support/tree.ts';
import { cannotRun, ROOT } from './programs.ts';

/** Why there is no such machine here; undefined where there is. */
export function noPageMachine(...programs: readonly string[]): string | undefined {
  return cannotRun('unshare', 'nsenter', 'pivot_root', 'mount', 'ip', 'setpriv', ...programs);
}

export interface RunOptions {
  /** How the last command must end; 0 without it. */
  readonly status?: number;
  /** Runs on a terminal, and gives this answer to each question that ends with `[y/N]`. */
  readonly answer?: string;
}

export interface Machine extends AsyncDisposable {
  /** Path by which this process reaches a path of the machine. */
  readonly at: (path: string) => string;
  /** What starts a program of this machine in the network of that one. */
  readonly network: readonly string[];
  /** Runs lines of bash as its reader in the folder `work` of the home; what they printed. A failure throws with it. */
  readonly run: (lines: string, options?: RunOptions) => Promise<string>;
  /** Starts a program that stays, and waits until a line of bash succeeds. */
  readonly start: (program: string, ready: string) => Promise<void>;
  /**
   * Runs the one block of the page that has this text. Commands of a block with output (`$ curlew …`, `# curlew …`) must print
   * what follows them there, if anything does, in which `…` stands for any text, and a line of its own for any lines. One that shows an
   * error must fail.
   */
  readonly block: (text: string, options?: RunOptions) => Promise<string>;
  /** Blocks that were not run yet, each by its first line. */
  readonly left: () => readonly string[];
}

/**
 * Sets up the root folder `$1`, with the checkout `$2` and the other paths read-only at their places. A file system below the
 * machine's root is enough for overlays of sandboxes, which could not be made over another overlay.
 */
const SETUP = `root="$1"; shift
mount -t tmpfs -o mode=755,size=64g tmpfs "$root"
cd "$root"
mkdir proc sys dev opt srv media mnt root root/work home run tmp var
chmod 1777 tmp
for path in /usr /bin /sbin /lib /lib64 /sys "$@"; do
  if [[ -L "$path" ]]; then cp -a "$path" ".$path"; continue; fi
  [[ -e "$path" ]] || continue
  mkdir -p ".\${path%/*}"
  if [[ -d "$path" ]]; then mkdir -p ".$path"; else : >".$path"; fi
  mount --bind "$path" ".$path" && mount -o remount,bind,ro ".$path"
done
cp -a /etc etc
: >etc/resolv.conf
mkdir -p var/tmp var/lib var/log var/cache run/bin
mount -t proc proc proc
mount --rbind /dev dev
ip link set lo up
pivot_root . mnt
umount -l /mnt
cd /
echo ready
# The first process stays a shell, which waits for those that ended without their parents.
cat
exit 0`;

/** `curlew serve` comes back when it listens, so that a block can continue; so do other commands that stay. */
const PROGRAMS = `mkdir -p /run/bin
cat >/run/bin/curlew <<'END'
#!/bin/bash
main=(NODE MAIN)
case "$1 \${2-}" in
  serve\\ * | controller\\ * | 'agent run') ;;
  *) exec "\${main[@]}" "$@" ;;
esac
if [[ " $* " == *' --help '* ]]; then exec "\${main[@]}" "$@"; fi
file="/run/$1"
if [[ -f "$file.pid" ]]; then kill "$(<"$file.pid")" && while kill -0 "$(<"$file.pid")" 2>/dev/null; do sleep 0.05; done; fi
: >"$file.log"
setsid "\${main[@]}" "$@" >"$file.log" 2>&1 </dev/null &
echo $! >"$file.pid"
if [[ "$1" != serve ]]; then exit 0; fi
for _ in {1..600}; do
  if grep -q 'https\\?://' "$file.log"; then exit 0; fi
  if ! kill -0 $! 2>/dev/null; then break; fi
  sleep 0.05
done
cat "$file.log"
exit 1
END
printf '#!/bin/sh\\nexec "$@"\\n' >/run/bin/sudo
chmod +x /run/bin/*`;

/** Files of add-ons that only leave a file on the node, for each `name@version`. */
export function plainAddons(...ids: readonly string[]): Files {
  const files: Record<string, string> = {};
  for (const id of ids) {
    const [name = '', version = ''] = id.split('@');
    const folder = `addons/${name}/${version}`;
    files[`${folder}/Manifest`] = 'asset words words.txt\n';
    files[`${folder}/words.txt`] = `${id}\n`.repeat(1000);
    files[`${folder}/install.sh`] = `function ${name}() { cp "$DIR/${folder}/words.txt" /etc/${name}.txt; }\n`;
  }
  return files;
}

/** An installer spec of these fields, such as `web: { version: latest }`. */
export function installerSpec(...fields: readonly string[]): string {
  const head = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: shop\nspec:\n';
  return `${head}${fields.map((field) => `  ${field}\n`).join('')}`;
}

/** Where OpenSSL, Go and curl of Debian look for the authorities that they trust. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/** Status 2 is no failure: by it, a command says that something would change. */
const STOP_AT_FAILURES = `set -E; trap 's=$?; ((s == 2)) || exit $s' ERR`;

interface Block {
  readonly language: string;
  readonly text: string;
}

/** A machine for the blocks of a page, which is named from the checkout: `docs/bundles.md`. */
export async function pageMachine(
  page: string,
  {
    files = {},
    hosts = [],
    env = {},
    values = {},
    user,
  }: {
    /** Written to the folder `work` of the reader's home. */
    readonly files?: Files;
    /** Names that lead to its loopback; `/etc/page.crt` and `.key` are a certificate for them that its programs trust. */
    readonly hosts?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    /** What stands in the page for something that differs from one reader to the next, and what it is here. */
    readonly values?: Readonly<Record<string, string>>;
    /** Id of an ordinary user, whose PATH has no folders of administrators, as the reader of the page; root without it. */
    readonly user?: number | undefined;
  } = {},
): Promise<Machine> {
  let text = await readFile(join(ROOT, page), 'utf8');
  for (const [word, value] of Object.entries(values)) text = text.replaceAll(word, value);
  const blocks = new Set<Block>(
    [...text.matchAll(/^```(sh|bash|console)\n([^]*?)^```$/gm)].map(([, language = '', block = '']) => ({
      language,
      text: block,
    })),
  );
  const box = await tree();
  await mkdir(box.at('root'));
  const tools = await realpath(join(ROOT, '.curlew/tools')).catch(() => ROOT);
  const paths = [ROOT, tools, process.execPath].filter((path) => !path.startsWith('/usr/'));
  const apart = ['--mount', '--net', '--pid', '--ipc', '--uts', '--propagation', 'private', '--fork', '--kill-child'];
  const holder = spawn('unshare', [...apart, 'bash', '-euc', SETUP, 'bash', box.at('root'), ...paths], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'exit');
  const [first] = (await Promise.race([once(holder.stdout, 'data'), ended])) as [unknown];
  if (String(first) !== 'ready\n') throw new Error(`no machine for ${page}: ended with ${String(first)}`);
  const inside = (await readFile(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8')).trim();
  const home = user === undefined ? '/root' : '/home/reader';
  const asUser = user === undefined ? [] : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
  const environment = {
    HOME: home,
    USER: user === undefined ? 'root' : 'reader',
    LANG: 'C.UTF-8',
    PATH: user === undefined ? '/run/bin:/usr/sbin:/usr/bin:/sbin:/bin' : '/run/bin:/usr/local/bin:/usr/bin:/bin',
    SSL_CERT_FILE: AUTHORITIES,
    ...env,
  };
  const at = (path: string): string => join(`/proc/${inside}/root`, path);
  const runBy = async (
    as: readonly string[],
    lines: string,
    { status = 0, answer }: RunOptions = {},
  ): Promise<string> => {
    const shell = ['bash', '-uo', 'pipefail', '-c', `${STOP_AT_FAILURES}\ncd ~/work\n${lines}`];
    const enter = ['--target', inside, '--mount', '--net', '--pid', '--ipc', '--uts', '--', ...as];
    const onTerminal = ['script', '-qefc', shell.map(shellQuote).join(' '), '/dev/null'];
    const running = execa('nsenter', [...enter, ...(answer === undefined ? shell : onTerminal)], {
      env: environment,
      extendEnv: false,
      stdin: answer === undefined ? 'ignore' : 'pipe',
      reject: false,
      all: true,
    });
    if (answer !== undefined) {
      let line = '';
      running.all.on('data', (data: Buffer) => {
        line = `${line}${data.toString()}`.split('\n').at(-1) ?? '';
        if (!line.includes('[y/N] ')) return;
        line = '';
        running.stdin?.write(`${answer}\r`);
      });
    }
    const { all, exitCode } = await running;
    if (exitCode !== status) throw new Error(`${page}: status ${exitCode}\n${lines}\n${all}`);
    return all;
  };
  const run: Machine['run'] = async (lines, options) => runBy(asUser, lines, options);
  const close = async (): Promise<void> => {
    holder.stdin.end();
    await ended;
    await box[Symbol.asyncDispose]();
  };
  const names = hosts.map((host) => `127.0.0.1 ${host}`).join('\n');
  await mkdir(at(`${home}/work`), { recursive: true });
  const prepare = runBy(
    [],
    `${PROGRAMS.replace('NODE', `'${process.execPath}'`).replace('MAIN', `'${BUILT_MAIN}'`)}
printf '127.0.0.1 localhost\\n%s\\n' '${names}' >/etc/hosts`,
  );
  try {
    await prepare;
    if (hosts.length > 0) {
      const { key, cert, ca } = await makeCertificate(hosts);
      await writeFile(at('/etc/page.key'), key);
      await writeFile(at('/etc/page.crt'), cert);
      await mkdir(dirname(at(AUTHORITIES)), { recursive: true });
      await appendFile(at(AUTHORITIES), ca);
    }
    await writeTree(at(`${home}/work`), files);
    if (user !== undefined) await runBy([], `chown -R ${user}:${user} ~ /run /srv`);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    at,
    network: ['nsenter', `--net=/proc/${inside}/ns/net`, '--'],
    run,
    start: async (program, ready) => {
      await run(`setsid bash -c '${program.replaceAll("'", String.raw`'\''`)}' >/run/started.log 2>&1 </dev/null &
for _ in {1..600}; do
  if { ${ready}; } >/dev/null 2>&1; then exit 0; fi
  if ! kill -0 $! 2>/dev/null; then break; fi
  sleep 0.05
done
cat /run/started.log
exit 1`);
    },
    block: async (part, options) => {
      const found = [...blocks].filter((block) => block.text.includes(part));
      const [block] = found;
      assert.is(found.length, 1, `${page}: ${found.length} blocks that were not run have ${part}`);
      if (block === undefined) return '';
      blocks.delete(block);
      if (block.language !== 'console') return run(block.text, options);
      let printed = '';
      const commands = commandsOf(block.text);
      assert.ok(commands.length > 0, `${page}: no command in the block of ${part}`);
      for (const { command, output } of commands) {
        const all = await run(/^error [A-Z_]+: /m.test(output) ? `! ${command}` : command, options);
        if (output !== '') assert.match(all, asPattern(output));
        printed += `${all}\n`;
      }
      return printed;
    },
    left: () => [...blocks].map(({ text: block }) => block.split('\n')[0] ?? ''),
    [Symbol.asyncDispose]: close,
  };
}

/** The commands of a block with output, and what the page shows after each. */
function commandsOf(block: string): readonly { readonly command: string; readonly output: string }[] {
  return block
    .split(/^[$#] /m)
    .slice(1)
    .map((part) => {
      const [command = '', ...lines] = part.split('\n');
      return { command, output: lines.join('\n').trimEnd() };
    });
}

function asPattern(output: string): RegExp {
  const lines = output.split('\n').map((line) =>
    line === '…'
      ? '[^]*?'
      : line
          .split('…')
          .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
          .join('.*'),
  );
  return new RegExp(`^${lines.join('\n')}$`);
}
