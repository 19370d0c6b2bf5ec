/** What hooks of a trial try in vain against the machine around their sandbox. Needs root and namespaces. */
import { execa } from 'execa';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import type { Outcome } from '../support/curlew.ts';
import { unless } from '../support/needs.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { asOtherUser, OTHER_USER } from './support/other-user.ts';
import { attempts, INSTALL, noSandbox, type Attempt } from './support/sandbox.ts';

const test = suite('ways out of the sandbox', { timeoutMs: 180_000 });

const when = unless(await noSandbox(), test);

/** Listeners of this machine, on TCP and on an abstract Unix socket; each counts who has come. */
async function listening(name: string): Promise<AsyncDisposable & { readonly port: number; visits: number }> {
  const servers: Server[] = [];
  const state = {
    port: 0,
    visits: 0,
    [Symbol.asyncDispose]: async () => {
      for (const server of servers) await new Promise((resolve) => server.close(resolve));
    },
  };
  for (const where of [{ host: '127.0.0.1', port: 0 }, { path: `\0${name}` }, { path: `/run/${name}.sock` }]) {
    const server = createServer((socket) => {
      state.visits += 1;
      socket.on('error', () => undefined);
      socket.end('hello\n');
    });
    servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(where, resolve);
    });
    const address = server.address();
    if (typeof address === 'object' && address !== null) state.port = address.port;
  }
  return state;
}

/** One hook that tries all and writes down what worked; then what it left outside of the sandbox, for sure in vain. */
function attacker(all: readonly Attempt[]): ReturnType<typeof bundleOf> {
  const lines = all.map(
    ({ line }, index) => `( set +eE; trap - ERR; exec 2>>"$DIR/said"
${line}
) >/dev/null && echo ${index} >>"$DIR/out"`,
  );
  const script = `aaa() { set +e
touch "$DIR/out"
echo exchanged >/dev/shm/curlew-sandbox-out
ipcmk -M 64 >/dev/null
${lines.join('\n')}
echo done >"$DIR/done"
set -e
}
`;
  return bundleOf([{ name: 'aaa', version: '1.0.0', files: { 'install.sh': script } }]);
}

async function worked(box: Tree, all: readonly Attempt[]): Promise<readonly string[]> {
  assert.is(await readFile(box.at('root/var/lib/curlew/done'), 'utf8'), 'done\n');
  const found = await readFile(box.at('root/var/lib/curlew/out'), 'utf8');
  return found
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => all[Number(line)]?.title ?? line);
}

/** What a sandbox must not change on this machine. */
async function machine(): Promise<Readonly<Record<string, string>>> {
  const ipc = await execa('ipcs', ['-m']);
  return {
    hostname: await readFile('/proc/sys/kernel/hostname', 'utf8'),
    shared: ipc.stdout,
    modules: (await readFile('/proc/modules', 'utf8').catch(() => ''))
      .split('\n')
      .map((line) => line.split(' ')[0])
      .join(),
    opt: (await readdir('/opt')).join(),
    cgroups: await readFile('/proc/self/cgroup', 'utf8'),
    namespaces: await readFile('/proc/sys/user/max_user_namespaces', 'utf8'),
    null: String((await stat('/dev/null')).mode),
  };
}

interface Scene extends AsyncDisposable {
  readonly box: Tree;
  readonly all: readonly Attempt[];
  readonly env: Readonly<Record<string, string>>;
  readonly visits: () => number;
  readonly run: (...more: readonly string[]) => Promise<Outcome>;
}

async function scene(): Promise<Scene> {
  const box = await tree({ 'home/.kube/config': 'token: hunter2\n', secret: 'hunter2' });
  const config = await mkdtemp('/opt/curlew-sandbox-');
  const name = config.slice('/opt/'.length);
  await writeFile(join(config, 'admin.conf'), 'token: hunter2\n');
  await writeFile(`/dev/shm/${name}`, 'secret');
  const server = await listening(name);
  const shared = await execa('python3', [
    '-I',
    '-c',
    'import ctypes; print(ctypes.CDLL(None).shmget(0xc0ffee,64,0o1600))',
  ]);
  const all = attempts({ home: box.at('home'), secret: box.at('secret'), port: server.port, name, pid: process.pid });
  await writeFile(box.at('b.tar.gz'), attacker(all));
  const env = {
    HOME: box.at('home'),
    KUBECONFIG: join(config, 'admin.conf'),
    AWS_SECRET_ACCESS_KEY: 'hunter2',
    PGPASSWORD: 'hunter2',
  };
  return {
    box,
    all,
    env,
    visits: () => server.visits,
    run: async (...more) => {
      // Descriptors that a shell has left open for its children: a secret, and a folder of the machine.
      const shell = 'exec 4<secret 5</ 6<secret 9</ 12<secret 20</; exec "$@"';
      const words = [process.execPath, MAIN, ...INSTALL, ...more];
      const options = { cwd: box.path, env, reject: false, stdin: 'ignore' } as const;
      const { exitCode = 255, stdout, stderr } = await execa('bash', ['-c', shell, 'bash', ...words], options);
      return { exitCode, stdout, stderr };
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await execa('ipcrm', ['-m', shared.stdout.trim()], { reject: false });
      await rm(config, { recursive: true, force: true });
      await rm(`/dev/shm/${name}`, { force: true });
      await box[Symbol.asyncDispose]();
    },
  };
}

when('nothing leads out of it, and the machine is as before', async () => {
  await using here = await scene();
  const before = await machine();
  const { exitCode, stderr } = await here.run();
  assert.is(exitCode, 0, stderr);
  assert.equal(await worked(here.box, here.all), []);
  assert.equal(await machine(), before);
  assert.is(here.visits(), 0);
  assert.is(await stat('/dev/shm/curlew-sandbox-out').catch(() => 'absent'), 'absent');
});

when('somebody who is not root has a sandbox like that, too, or is refused', async () => {
  await using here = await scene();
  const before = await machine();
  await execa('chown', ['-R', `${OTHER_USER}:${OTHER_USER}`, here.box.path]);
  const options = { cwd: here.box.path, env: here.env, reject: false, stdin: 'ignore' } as const;
  const [program, ...words] = asOtherUser(process.execPath, MAIN, ...INSTALL);
  const { exitCode, stderr } = await execa(program, words, options);
  if (exitCode === 22) {
    assert.match(stderr, /cannot create a sandbox in .*(?:user namespace|overlay)/);
    assert.equal(await readdir(here.box.path), ['b.tar.gz', 'home', 'secret']);
    return;
  }
  assert.is(exitCode, 0, stderr);
  assert.equal(await worked(here.box, here.all), []);
  assert.equal(await machine(), before);
  assert.is(here.visits(), 0);
});

when('with --network host hooks reach the network of the machine, and nothing else', async () => {
  await using here = await scene();
  const before = await machine();
  const { exitCode, stderr } = await here.run('--network', 'host');
  assert.is(exitCode, 0, stderr);
  // Abstract sockets belong to the network.
  assert.equal(await worked(here.box, here.all), ['a listener on TCP', 'an abstract Unix socket', 'another network']);
  assert.equal(await machine(), before);
});

when('variables that are asked for by name are passed on, with KUBECONFIG the files that it names', async () => {
  await using here = await scene();
  const { exitCode, stderr } = await here.run('--env', 'PGPASSWORD', '--env', 'KUBECONFIG');
  assert.is(exitCode, 0, stderr);
  assert.equal(await worked(here.box, here.all), [
    'the kubeconfig of the environment',
    'the kubeconfig by its path',
    'secrets of the environment',
    'secrets in the environment of others',
  ]);
});

test.run();
