/** An agent whose disk is full: what it has stays, nothing new begins that it could not remember, and room is all that it needs. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { openAgentScene, type AgentScene } from '../support/agent-scene.ts';
import { textAt } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import { eventually } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('components/agent-space', { timeoutMs: 180_000 });
const reason = cannotRun('mount', 'umount');

/** Fills the disk up to its end, or leaves this many bytes. */
async function fill({ box }: AgentScene, leave = 0): Promise<void> {
  const filler = box.at('agent/filler');
  await writeFile(filler, Buffer.alloc(1 << 20)).catch(() => undefined);
  if (leave > 0) await run('truncate', ['-s', `-${leave}`, filler]);
}

if (reason === undefined) {
  test('no room for its record, then none for a content: it says so, keeps what is there, and goes on with room', async () => {
    await using scene = await openAgentScene();
    const { box } = scene;
    await mkdir(box.at('agent'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', box.at('agent')]);
    try {
      await scene.order({ source: scene.manifest('1') });
      const agent = await scene.start();
      await scene.becomes('1 Succeeded');

      await fill(scene);
      await scene.order({ source: scene.manifest('2'), revision: 2 });
      await eventually(async () => Promise.resolve(agent.notes.some((one) => /record\.json.*space/.test(one))));
      await scene.becomes('2 Progressing');
      assert.is(await scene.version(), '1');
      await rm(box.at('agent/filler'));
      await scene.becomes('2 Succeeded');
      assert.is(await scene.version(), '2');

      await fill(scene, 40_960);
      const metadata = { name: 'page', namespace: 'default' };
      const big = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { version: '3', more: 'x'.repeat(100_000) } };
      await scene.order({ source: scene.manifest('3', { objects: [big] }), revision: 3 });
      await scene.becomes('3 Progressing Waiting');
      assert.match(textAt(await scene.status(), 'message'), /^cannot write .*space/);
      assert.is(await scene.version(), '2');
      await rm(box.at('agent/filler'));
      await scene.becomes('3 Succeeded');
      assert.is(await scene.version(), '3');
      await agent.stop();
    } finally {
      await run('umount', ['--lazy', box.at('agent')]);
    }
  });
} else test.skip('an agent whose disk is full', reason);

test.run();
