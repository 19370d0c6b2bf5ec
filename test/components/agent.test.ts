/** Agents as processes below a `--root`: packages of a signed store, killed in hooks, and their memory. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { readPublicKey } from '../../src/formats/signing/keys.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import { openAgentScene, type AgentScene } from '../support/agent-scene.ts';
import { textAt } from '../support/api-client.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { curlewOk, startCurlew } from '../support/curlew.ts';
import { never } from '../support/context.ts';
import { madePackage, publishAs } from '../support/releases.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/agent', { timeoutMs: 240_000 });
const reason = cannotRun();
const opened = createOpened();

/** Waits for a file, and writes down its setting and the number of its attempt. */
const SCRIPT = `page() {
  touch "$DIR/ready-$PAGE_VERSION"
  until [ -e "$DIR/go-$PAGE_VERSION" ]; do sleep 0.1; done
  echo "$PAGE_VERSION $PAGE_GREETING $CURLEW_ATTEMPT" >>"$DIR/page"
  [ ! -e "$DIR/bad-$PAGE_VERSION" ]
}
page_health() { [ ! -e "$DIR/sick" ]; }
page_uninstall() { [ ! -e "$DIR/stay" ] && rm -f "$DIR/page"; }
`;

if (reason === undefined) {
  let scene: AgentScene;
  const hashes = new Map<string, string>();
  const start = (): ReturnType<typeof startCurlew> => {
    const words = ['agent', 'run', '--root', 'site', '--kubeconfig', 'here.conf', '--from', 'store', '--delay', '1s'];
    const one = startCurlew(words, { cwd: scene.box.path });
    opened.keep({
      [Symbol.asyncDispose]: async () => {
        one.kill('SIGKILL');
        await one;
      },
    });
    return one;
  };
  let agent: ReturnType<typeof startCurlew> | undefined;
  const restart = async (): Promise<void> => {
    agent?.kill('SIGKILL');
    await agent;
    agent = start();
  };
  const node = (name: string): string => scene.box.at('site/var/lib/curlew', name);
  const order = async (version: string, revision: number, more: object = {}): Promise<void> => {
    const source = { package: { name: 'page', version, hash: hashes.get(version) } };
    await scene.order({ source, revision, values: { greeting: 'hello' }, ...more }, 'page');
  };

  test.before(async () => {
    scene = opened.keep(await openAgentScene());
    const { box } = scene;
    await mkdir(box.at('store'));
    const store = createFolderStore(box.at('store'));
    const made = [];
    for (const version of ['1.0.0', '2.0.0']) {
      const one = await madePackage(box, 'page', version, `${SCRIPT}# ${version}\n`, { hooks: ['page_health'] });
      hashes.set(version, one.addon.digest);
      made.push(one);
    }
    await publishAs(store, 'r1', made, never);
    await curlewOk(['keygen', 'our'], { cwd: box.path });
    await curlewOk(['sign', '--store', 'store', '--release', 'r1', '--key', 'our.key'], { cwd: box.path });
    await scene.register([readPublicKey(await readFile(box.at('our.pub'), 'utf8'), 'our.pub')]);
  });
  test.after(opened.close);

  test('an idle agent takes at most 80 MB', async () => {
    const idle = start();
    await eventually(async () => textAt(await scene.cluster(), 'facts.version') !== '');
    const status = await readFile(`/proc/${idle.pid}/status`, 'utf8');
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
    idle.kill('SIGTERM');
    await idle;
    assert.ok(Number(kilobytes) <= 80_000, `${kilobytes} kB`);
  });

  test('an agent that is killed in a hook continues there, and the package is installed with its settings', async () => {
    await order('1.0.0', 1);
    await restart();
    await appears(node('ready-1.0.0'), agent);
    await scene.becomes('1 Progressing', 'page');
    agent?.kill('SIGKILL');
    await agent;
    await writeFile(node('go-1.0.0'), '');
    await restart();
    await scene.becomes('1 Succeeded', 'page');
    assert.match(await readFile(node('page'), 'utf8'), /^1\.0\.0 hello 2$/m);
  });

  test('the health of a package is what its hook says', async () => {
    const health = async (): Promise<string> => textAt(await scene.status('page'), 'health');
    await restart();
    await eventually(async () => (await health()) === 'True');
    await writeFile(node('sick'), '');
    await restart();
    await eventually(async () => (await health()) === 'False');
    await rm(node('sick'));
  });

  test('a package that is not what the hub names is refused before anything of it runs', async () => {
    await order('2.0.0', 2, { source: { package: { name: 'page', version: '2.0.0', hash: hashes.get('1.0.0') } } });
    await scene.becomes('2 Failed OtherDigest', 'page');
  });

  test('a version whose hook fails is reported, and the cluster goes back to the one before', async () => {
    await writeFile(node('go-2.0.0'), '');
    await writeFile(node('bad-2.0.0'), '');
    await order('2.0.0', 3);
    await scene.becomes('3 Failed HookFailed', 'page');
    await order('1.0.0', 4);
    await scene.becomes('4 Succeeded', 'page');
    const lines = (await readFile(node('page'), 'utf8')).trim().split('\n');
    assert.match(lines.at(-1) ?? '', /^1\.0\.0 hello /);
  });

  test('a removal ends without the package', async () => {
    await order('1.0.0', 5, { action: 'Remove' });
    await scene.becomes('5 Succeeded', 'page');
    await eventually(async () =>
      readFile(node('page')).then(
        () => false,
        () => true,
      ),
    );
  });
} else test.skip('agents as processes', reason);

test.run();
