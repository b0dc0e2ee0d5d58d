package cronjob

import "github.com/bayplan/bayplan/internal/controller"

var skew = controller.Histogram("cronjob_controller", "job_creation_skew_duration_seconds", "Time from when a CronJob was due to when its Job was created.",
	[]float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512})
