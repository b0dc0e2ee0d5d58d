package probe

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
)

func (p *Prober) grpc(ctx context.Context, action *v1.GRPCAction, t Target, timeout time.Duration) (Result, string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	address := net.JoinHostPort(t.IP, fmt.Sprint(action.Port))
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUserAgent(userAgent),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return p.Dial(ctx, "tcp", address) }))
	if err != nil {
		return Errored, "", err
	}
	defer conn.Close()
	service := ""
	if action.Service != nil {
		service = *action.Service
	}
	resp, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{Service: service})
	if err != nil {
		return Failure, grpcFailure(err, address, timeout), nil
	}
	if resp.Status != health.HealthCheckResponse_SERVING {
		return Failure, fmt.Sprintf("service unhealthy (responded with %q)", resp.Status.String()), nil
	}
	return Success, "service healthy", nil
}

func grpcFailure(err error, address string, timeout time.Duration) string {
	s, _ := status.FromError(err)
	switch s.Code() {
	case codes.Unimplemented:
		return fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", s.Message())
	case codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: health rpc did not complete within %s", timeout)
	case codes.Unavailable:
		return fmt.Sprintf("error: failed to connect service %q: %s", address, s.Message())
	default:
		return fmt.Sprintf("error: health rpc probe failed: %s", s.Message())
	}
}
