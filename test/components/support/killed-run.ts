/**
 * A run that is killed from outside: it has pulled an image, runs a container and is in the middle of a build when it says
 * `ready`. usage: killed-run.ts REFERENCE, with DOCKER_HOST
 */
import { readDockerfile } from '../../../src/build/containers/dockerfile.ts';
import { BASE, openContainers } from './engine.ts';

const [, , reference = ''] = process.argv;
const { signal } = new AbortController();
const waiting = new Set(['run', 'build']);
const { containers, report } = await openContainers({ DOCKER_HOST: process.env['DOCKER_HOST'] ?? '' }, (event) => {
  if (event.type !== 'step-log' || !event.text.endsWith('is up')) return;
  waiting.delete(event.id);
  if (waiting.size === 0) console.log('ready');
});
await containers.bring(reference, { id: 'pull', report, signal });
const command = ['/bin/sh', '-c', 'echo run is up; sleep 1000'];
const running = containers.run(
  { id: 'run', doing: 'run', image: BASE, command, files: [], limitMs: 1e6 },
  async () => undefined,
  { report, signal },
);
const dockerfile = readDockerfile(`FROM ${BASE}\nRUN touch /made\nRUN echo build is up; sleep 1000\n`);
const building = containers.build(
  { id: 'build', doing: 'build', dockerfile, context: [], args: {}, limitMs: 1e6, bases: new Set() },
  async () => undefined,
  { report, signal },
);
await Promise.all([running, building]);
