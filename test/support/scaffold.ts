/** New add-ons in a temporary folder, without a command line. */
import { execa } from 'execa';
import { join } from 'node:path';
import { makeAddon, type MadeAddon, type NewAddon } from '../../src/manifest/scaffold/new-addon.ts';
import { never } from './context.ts';
import type { Tree } from './tree.ts';

const SAMPLES: string = join(import.meta.dirname, '../../scripts/new');

export interface NewGiven extends Partial<NewAddon> {
  /** Replaces the PATH of the tests. */
  readonly path?: string;
  readonly samples?: string;
  readonly signal?: AbortSignal;
}

/** Makes the add-on `web` unless told otherwise; `from` is a path below the folder. */
export async function newIn(box: Tree, given: NewGiven = {}): Promise<MadeAddon> {
  const { path = process.env['PATH'] ?? '', samples = SAMPLES, signal = never, ...more } = given;
  const usual = {
    name: 'web',
    version: '1.0.0',
    from: undefined,
    hooks: [],
    upstream: undefined,
    newest: undefined,
    hasTemplate: true,
  };
  const env = { PATH: path, HOME: box.path };
  return makeAddon({ ...usual, root: box.path, ...more }, { cwd: box.path, env, samples, signal });
}

/** Runs the generator of an add-on's template with nothing in its environment but PATH. */
export async function runGenerator(box: Tree, name: string, args: readonly string[]): Promise<string> {
  const { stdout } = await execa(box.at('addons', name, 'template/generate.sh'), [...args], {
    cwd: box.path,
    env: { PATH: process.env['PATH'] ?? '' },
    extendEnv: false,
    stdin: 'ignore',
  });
  return stdout;
}

/** Many kinds of resources, with images in every form that the generator of a template reads too. */
export const RESOURCES = `# Made by hand.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: webs.example.com
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Web, plural: webs }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object } }
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: web-system
spec:
  ports:
    - port: 80
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: web-system
spec:
  selector:
    matchLabels: { app: web }
  template:
    metadata:
      labels: { app: web }
    spec:
      initContainers:
        - name: first
          image: "registry.example/rook/ceph:v1" # a comment
      containers:
        - image: registry.example/web:1.0
          name: web
          args:
            - --agent-image=registry.example/agent:2
            - "--config-reloader=registry.example/reloader:3"
            - --listen=registry.example/x:80
          env:
            - name: RELATED_IMAGE_SIDE
              value: registry.example/side:4
            - name: ADDRESS
              value: registry.example/no:1
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: clean
  namespace: web-system
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - { name: a, image: registry.example/ceph/ceph:v17 }
            - { "name": "b", "image": "docker.io/library/busybox:1.36" }
            - name: c
              image: busybox:1.36
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: images
  namespace: web-system
data:
  SIDE_IMAGE: registry.example/tool:5
---
apiVersion: example.com/v1
kind: Web
metadata:
  name: main
  namespace: web-system
spec:
  image: registry.example/pinned@sha256:${'0123456789abcdef'.repeat(4)}
`;
