import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { renderFailure } from '../../src/cli/render/failure.ts';
import { NO_PAINT } from '../../src/cli/render/paint.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { openSsh, SshError, type RemoteRun, type Ssh, type SshHost } from '../../src/machine/ssh/ssh.ts';
import * as assert from '../support/assert.ts';
import { appears } from '../support/appears.ts';
import { never } from '../support/context.ts';
import { missing, unless } from '../support/needs.ts';
import { SSHD, startSshd, type Sshd } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('components/ssh', { timeoutMs: 60_000 });
const tests = unless(missing(SSHD, 'ssh', 'ssh-keygen', 'pgrep'), test);

interface Scene extends AsyncDisposable {
  readonly box: Awaited<ReturnType<typeof tree>>;
  readonly server: Sshd;
  readonly ssh: Ssh;
  readonly run: (script: string, more?: Partial<RemoteRun>, host?: Partial<SshHost>) => Promise<string>;
}

async function scene(options?: Parameters<typeof startSshd>[1]): Promise<Scene> {
  const box = await tree();
  const server = await startSshd(box.at('sshd'), options);
  const ssh = openSsh({ PATH: process.env['PATH'], HOME: box.path }, { config: server.config });
  return {
    box,
    server,
    ssh,
    run: async (script, more, host) =>
      ssh.run({ ...server.host, ...host }, { script, limitMs: 20_000, signal: never, ...more }),
    [Symbol.asyncDispose]: async () => {
      await ssh[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

async function failure(run: Promise<string>): Promise<SshError> {
  const error = await run.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof SshError, String(error));
  return error;
}

tests('operands and input arrive unchanged, and a program that fails says its status and its last line', async () => {
  await using at = await scene();
  const odd = `it's "$HOME" \\ *\n%h`;
  assert.is(
    await at.run('printf "%s|" "$#" "$1" "$2"; cat', { operands: [odd, ''], input: 'secret' }),
    `2|${odd}||secret`,
  );
  const failed = await failure(at.run('echo why >&2; exit 3'));
  assert.is(`${failed.problem} ${failed.message}`, 'status cannot run a program on n1: it failed with status 3: why');
  // ssh has these for itself, and for sudo.
  for (const status of [255, 253]) assert.is((await failure(at.run(`exit ${status}`))).problem, 'status');
});

tests('curlew on a host that fails says all of its reason, and what to do', async () => {
  await using at = await scene();
  const output = Array.from({ length: 30 }, (_, index) => `  line ${index}`);
  const message = `kubernetes: kubernetes_join gave up: the cluster does not have the token a1\nlast lines of its output:\n${output.join('\n')}`;
  const error = new CurlewError('HOOK_FAILED', message, { hint: 'curlew logs --run 1' });
  const script = 'echo before >&2; printf "%s\\n" "$1" >&2; exit 20';
  const operands = [renderFailure(error, NO_PAINT)];
  for (const line of [undefined, () => undefined]) {
    assert.match(
      (await failure(at.run(script, { operands, line }))).reason,
      /^n1 says: kubernetes: kubernetes_join gave up: the cluster does not have the token a1; last lines of its output: line 0; line 1; .*; line 29; hint: on n1: curlew logs --run 1$/,
    );
  }
  const long = renderFailure(new CurlewError('HOOK_FAILED', 'x'.repeat(9000), { hint: 'wait' }), NO_PAINT);
  assert.match((await failure(at.run(script, { operands: [long] }))).reason, /^.{1,1100}….{900,1000}; hint: wait$/);
});

tests('one connection is used for all programs of a host, in a folder of its owner, and ends with it', async () => {
  await using at = await scene();
  const first = await at.run('echo "$SSH_CONNECTION"');
  const others = await Promise.all([1, 2, 3, 4].map(async () => at.run('echo "$SSH_CONNECTION"')));
  assert.equal(others, [first, first, first, first]);
  const folder = readdirSync('/tmp').filter(
    (name) => name.startsWith('curlew-ssh-') && name.includes(`-${process.pid}-`),
  );
  assert.is(folder.length, 1);
  assert.is(statSync(`/tmp/${folder[0]}`).mode & 0o777, 0o700);
  await at.ssh[Symbol.asyncDispose]();
  assert.not.ok(existsSync(`/tmp/${folder[0]}`));
});

tests('a host is known by the fingerprint or the key of any of its kinds, and by nothing else', async () => {
  await using at = await scene();
  const { ed25519, ecdsa } = at.server.keys;
  for (const hostKey of [ed25519.fingerprint, ed25519.line, ecdsa.line]) {
    assert.is(await at.run('echo yes', {}, { hostKey }), 'yes\n');
  }
  const other = `SHA256:${'A'.repeat(43)}`;
  const changed = await failure(at.run('echo never', {}, { hostKey: other }));
  assert.is(changed.problem, 'host-key');
  assert.match(changed.message, `127.0.0.1:${at.server.host.port} has another host key than ${other}`);
  assert.match(changed.hint ?? '', 'ssh-keyscan');
  for (const hostKey of ['', 'SHA256:x" %n; touch /nowhere', 'yes']) {
    assert.is((await failure(at.run('true', {}, { hostKey }))).problem, 'invalid');
  }
});

tests('no address, user or jump host becomes an option of ssh', async () => {
  await using at = await scene();
  const option = `-oProxyCommand=touch ${at.box.at('touched')}`;
  for (const host of [{ address: option }, { user: option }, { via: option }, { via: 'a b' }, { address: '' }]) {
    assert.is((await failure(at.run('true', {}, host))).problem, 'invalid', JSON.stringify(host));
  }
  assert.not.ok(existsSync(at.box.at('touched')));
});

tests('a host that is down and a user that is refused are told apart', async () => {
  await using at = await scene();
  const port = 1;
  const down = await failure(at.run('true', {}, { port }));
  assert.is(down.problem, 'unreachable');
  assert.match(down.message, 'Connection refused');
  const denied = await failure(at.run('true', {}, { user: 'no-such-user' }));
  assert.is(denied.problem, 'denied');
});

tests('a connection that is cut is not a program that failed, and the next program connects again', async () => {
  await using at = await scene();
  const file = at.box.at('began');
  const cut = failure(at.run('echo >"$1"; exec sleep 30', { operands: [file] }));
  await appears(file);
  at.server.cut();
  assert.is((await cut).problem, 'cut');
  assert.is(await at.run('echo again'), 'again\n');
});

tests('time and output are limited', async () => {
  await using at = await scene();
  assert.is((await failure(at.run('exec sleep 30', { limitMs: 500 }))).problem, 'late');
  assert.is((await failure(at.run('exec head -c 100000 /dev/zero', { outputLimit: 1000 }))).problem, 'output');
});

tests('a jump host is connected through with the configuration of the user', async () => {
  await using at = await scene();
  const { config, host, keys } = at.server;
  const known = at.box.at('known');
  await writeFile(known, `[localhost]:${host.port} ${keys.ed25519.line}\n`);
  await writeFile(config, `${readFileSync(config, 'utf8')}UserKnownHostsFile "${known}"\n`);
  const via = `${host.user}@localhost:${host.port}`;
  const text = await at.run('echo "$SSH_CONNECTION"', {}, { via });
  assert.match(text, /^127\.0\.0\.1 /);
});

tests('a jump host that does not connect is named', async () => {
  await using at = await scene();
  const { config, host } = at.server;
  await writeFile(at.box.at('known'), '');
  const own = `UserKnownHostsFile "${at.box.at('known')}"\nStrictHostKeyChecking yes\n`;
  await writeFile(config, `${readFileSync(config, 'utf8')}${own}`);
  const via = `${host.user}@localhost:${host.port}`;
  const { problem, reason, hint } = await failure(at.run('true', {}, { via }));
  assert.match(`${problem}: ${reason}`, `unreachable: it does not answer through ${via}: `);
  assert.match(hint ?? '', `: ssh -J ${via} 127.0.0.1`);
});

const isRoot = process.getuid?.() === 0;

unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'useradd') : 'needs root', test)(
  'a user who may not use sudo without a password is named as that',
  async () => {
    await using at = await scene({
      lines: (file) => [`AuthorizedKeysCommand /bin/cat ${file}`, 'AuthorizedKeysCommandUser root'],
    });
    const user = `curlew-ssh-${process.pid}`;
    execFileSync('useradd', ['--no-create-home', '--shell', '/bin/sh', '--password', '*', user]);
    try {
      const refused = await failure(at.run('id -u', {}, { user }));
      assert.is(refused.problem, 'sudo');
      assert.match(refused.message, 'sudo');
    } finally {
      execFileSync('userdel', ['--force', user], { stdio: 'ignore' });
    }
  },
);

test.run();
