/** The table of collectors. */
import type { AnyCollector, Collector } from './collector.ts';
import type { Json } from '../../formats/yaml/yaml.ts';
import { blockDevices } from './collectors/block-devices.ts';
import { certificate } from './collectors/certificate.ts';
import { cpu } from './collectors/cpu.ts';
import { diskUsage } from './collectors/disk-usage.ts';
import { filesystemPerformance } from './collectors/filesystem-performance.ts';
import { hostOs } from './collectors/host-os.ts';
import { hostServices } from './collectors/host-services.ts';
import { http } from './collectors/http.ts';
import { ipv4Interfaces } from './collectors/ipv4-interfaces.ts';
import { kernelModules } from './collectors/kernel-modules.ts';
import { memory } from './collectors/memory.ts';
import { run } from './collectors/run.ts';
import { sysctl } from './collectors/sysctl.ts';
import { systemPackages } from './collectors/system-packages.ts';
import { tcpConnect } from './collectors/tcp-connect.ts';
import { tcpLoadBalancer } from './collectors/tcp-load-balancer.ts';
import { tcpPortStatus } from './collectors/tcp-port-status.ts';
import { time } from './collectors/time.ts';
import { udpPortStatus } from './collectors/udp-port-status.ts';

function row<Facts extends Json>(collector: Collector<Facts>): readonly [string, AnyCollector] {
  return [collector.kind, collector];
}

export const COLLECTORS: ReadonlyMap<string, AnyCollector> = new Map([
  row(blockDevices),
  row(certificate),
  row(cpu),
  row(diskUsage),
  row(filesystemPerformance),
  row(hostOs),
  row(hostServices),
  row(http),
  row(ipv4Interfaces),
  row(kernelModules),
  row(memory),
  row(run),
  row(sysctl),
  row(systemPackages),
  row(tcpConnect),
  row(tcpLoadBalancer),
  row(tcpPortStatus),
  row(time),
  row(udpPortStatus),
]);
